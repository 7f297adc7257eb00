package table

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// Query reads one page.
func (t *Table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	s, ok := t.schemas[q.Table]
	if !ok {
		return item.Page{}, fault.New(fault.NotFound, nil, "table %q", q.Table)
	}
	keys, err := keysOf(q, s)
	if err != nil {
		return item.Page{}, err
	}
	in, err := query(q, keys)
	if in == nil || err != nil {
		return item.Page{}, err
	}
	in.TableName = aws.String(t.name(q.Table))

	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	t.used.call()
	out, err := t.db.Query(ctx, in)
	if err != nil {
		return item.Page{}, session.Fault(err, "querying %s %s of %q", q.Table, q.Index, q.PK)
	}
	t.used.read(q.Table, out.ConsumedCapacity)
	page := item.Page{Items: make([]item.Item, 0, len(out.Items))}
	for _, attributes := range out.Items {
		i := decode(attributes)
		if q.To != nil && i[keys.sk] == q.To {
			if !q.Descending { // nothing before To can follow
				return page, nil
			}
			continue
		}
		page.Items = append(page.Items, i)
	}
	page.Cursor, err = encodeCursor(out.LastEvaluatedKey)
	return page, err
}

// Scan reads one page of a whole table.
func (t *Table) Scan(ctx context.Context, table, cursor string, limit int) (page item.Page, err error) {
	if _, ok := t.schemas[table]; !ok {
		return page, fault.New(fault.NotFound, nil, "table %q", table)
	}
	after, err := decodeCursor(cursor)
	if err != nil || limit < 1 {
		return page, fault.New(fault.Invalid, err, "reading table %s: a limit and a cursor of ours are needed", table)
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	t.used.call()
	out, err := t.db.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(t.name(table)), ExclusiveStartKey: after, Limit: aws.Int32(int32(min(limit, maxPage))),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	if err != nil {
		return page, session.Fault(err, "reading table %s", table)
	}
	t.used.read(table, out.ConsumedCapacity)
	for _, attributes := range out.Items {
		page.Items = append(page.Items, decode(attributes))
	}
	page.Cursor, err = encodeCursor(out.LastEvaluatedKey)
	return page, err
}

// keys are the key attributes of what is queried.
type keys struct {
	pk, sk   string // sk "" where there is none
	isNumber bool   // the sort key
}

func keysOf(q item.Query, s contract.Schema) (keys, error) {
	k := keys{pk: s.PK, sk: s.SK}
	if q.Index != "" {
		k = keys{}
		for _, x := range s.Indexes {
			if x.Name == q.Index {
				k = keys{pk: x.PK, sk: x.SK, isNumber: x.SKIsNumber}
			}
		}
	}
	wrong := func(bound any) bool {
		switch bound.(type) {
		case nil:
			return false
		case string:
			return k.sk == "" || k.isNumber
		case int64:
			return k.sk == "" || !k.isNumber
		}
		return true
	}
	var why string
	switch {
	case k.pk == "":
		why = "no such index"
	case q.Index != "" && q.Consistent:
		why = "an index has no consistent reads"
	case q.PK == "":
		why = "the key is empty"
	case q.Limit < 0:
		why = "the limit is negative"
	case wrong(q.From) || wrong(q.To):
		why = "a bound has another type than the sort key"
	default:
		return k, nil
	}
	return k, fault.New(fault.Invalid, nil, "querying %s %s of %q: %s", q.Table, q.Index, q.PK, why)
}

// query is q in DynamoDB's words; nil for a range that holds nothing.
//
// A key condition knows no half-open range: two bounds make a BETWEEN, which includes both. A
// number's To is one less then; a string has no predecessor, so the page is read with To and
// an item at the end is dropped afterwards.
func query(q item.Query, k keys) (*dynamodb.QueryInput, error) {
	var e expression
	condition := e.name(k.pk) + " = " + e.value(q.PK)
	switch {
	case q.From != nil && q.To != nil:
		if !less(q.From, q.To) { // BETWEEN refuses an empty range
			return nil, nil
		}
		to := q.To
		if n, ok := to.(int64); ok {
			to = n - 1
		}
		condition += " AND " + e.name(k.sk) + " BETWEEN " + e.value(q.From) + " AND " + e.value(to)
	case q.From != nil:
		condition += " AND " + e.name(k.sk) + " >= " + e.value(q.From)
	case q.To != nil:
		condition += " AND " + e.name(k.sk) + " < " + e.value(q.To)
	}
	after, err := decodeCursor(q.Cursor)
	if err != nil {
		return nil, fault.New(fault.Invalid, nil, "querying %s %s of %q: the cursor is not one of ours", q.Table,
			q.Index, q.PK)
	}
	in := &dynamodb.QueryInput{
		KeyConditionExpression: aws.String(condition), ExpressionAttributeNames: e.names,
		ExpressionAttributeValues: e.values,
		ScanIndexForward:          aws.Bool(!q.Descending), ExclusiveStartKey: after,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	}
	if q.Index != "" {
		in.IndexName = aws.String(q.Index)
	}
	if q.Consistent {
		in.ConsistentRead = aws.Bool(true)
	}
	if q.Limit > 0 {
		in.Limit = aws.Int32(int32(min(q.Limit, maxPage)))
	}
	return in, e.err
}

// maxPage keeps a limit inside what the request can say; a page ends at 1 MB anyway.
const maxPage = 1 << 20

// less compares two bounds of the same type.
func less(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a < b
	case int64:
		b, ok := b.(int64)
		return ok && a < b
	}
	return false
}

// encodeCursor turns the key after which the next page begins into an opaque text: base64 of
// a JSON object that holds key attributes and nothing else. "" at the end.
func encodeCursor(last map[string]types.AttributeValue) (string, error) {
	if len(last) == 0 {
		return "", nil
	}
	b, err := json.Marshal(decode(last))
	if err != nil {
		return "", fault.New(fault.Undecodable, err, "making a cursor")
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

func decodeCursor(cursor string) (map[string]types.AttributeValue, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	last := make(map[string]types.AttributeValue, len(raw))
	for name, r := range raw {
		var v any
		var text string
		var number int64
		if err := json.Unmarshal(r, &text); err == nil {
			v = text
		} else if err := json.Unmarshal(r, &number); err == nil {
			v = number
		} else {
			return nil, err
		}
		if last[name], err = encodeValue(v); err != nil {
			return nil, err
		}
	}
	return last, nil
}
