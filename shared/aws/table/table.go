package table

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

const (
	answerIn = 3 * time.Second  // one request; DynamoDB answers in milliseconds or not at all
	callIn   = 15 * time.Second // one call with all its tries
)

// Table reads and writes every table of a deployment. It is safe for concurrent use.
type Table struct {
	db      *dynamodb.Client
	name    func(logical string) string
	schemas map[string]contract.Schema // by logical name
	used    usage
}

// New returns the tables of a deployment; name gives the real name of each (contract.Env.TableName).
func New(cfg aws.Config, name func(logical string) string) *Table {
	t := &Table{db: dynamodb.NewFromConfig(session.Within(cfg, answerIn, retryable)), name: name,
		schemas: map[string]contract.Schema{}}
	for _, s := range contract.AllSchemas() {
		t.schemas[s.Name] = s
	}
	return t
}

// retryable says what is retried beyond what the SDK retries: another process's transaction
// holds an item for a moment, or a partition is asked too fast. The try carries the same token.
func retryable(err error) bool {
	var conflict *types.TransactionConflictException
	if errors.As(err, &conflict) {
		return true
	}
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &cancelled) && fault.Retryable(&fault.Error{Kind: cancelledKind(cancelled)})
}

// schema returns the table of a ref, whose key must fit it.
func (t *Table) schema(ref item.Ref) (contract.Schema, error) {
	s, ok := t.schemas[ref.Table]
	if !ok {
		return s, fault.New(fault.NotFound, nil, "table %q", ref.Table)
	}
	if ref.PK == "" || (ref.SK == "") != (s.SK == "") {
		return s, fault.New(fault.Invalid, nil, "key of %s: it does not fit the table's", ref)
	}
	return s, nil
}

// keyOf is the key of an item whose table is s.
func keyOf(ref item.Ref, s contract.Schema) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{s.PK: &types.AttributeValueMemberS{Value: ref.PK}}
	if s.SK != "" {
		key[s.SK] = &types.AttributeValueMemberS{Value: ref.SK}
	}
	return key
}

// Get reads one item, strongly consistent; nil is absent and no error.
func (t *Table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	s, err := t.schema(ref)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	t.used.call()
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(t.name(ref.Table)), Key: keyOf(ref, s), ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	if err != nil {
		return nil, session.Fault(err, "reading %s", ref)
	}
	t.used.read(ref.Table, out.ConsumedCapacity)
	return decode(out.Item), nil
}

// Identity says which table has that logical name now. It asks DynamoDB's control plane, which
// answers 2,500 times a second for a whole account: ask seldom.
func (t *Table) Identity(ctx context.Context, table string) (item.Identity, error) {
	if _, ok := t.schemas[table]; !ok {
		return item.Identity{}, fault.New(fault.NotFound, nil, "table %q", table)
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	out, err := t.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(t.name(table))})
	if err != nil {
		return item.Identity{}, session.Fault(err, "asking which table is %s", table)
	}
	return item.Identity{ID: aws.ToString(out.Table.TableId), Restored: out.Table.RestoreSummary != nil}, nil
}

// maxGet is how many items one BatchGetItem may ask for.
const maxGet = 100

// GetMany reads up to 100 items, strongly consistent each, in the order asked; nil is absent.
func (t *Table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	if len(refs) > maxGet {
		return nil, fault.New(fault.Invalid, nil, "reading %d items: %d is the most", len(refs), maxGet)
	}
	wanted := map[string]types.KeysAndAttributes{}
	logical := map[string]contract.Schema{} // by real name
	asked := make(map[item.Ref]bool, len(refs))
	for _, ref := range refs {
		s, err := t.schema(ref)
		if err != nil {
			return nil, err
		}
		if asked[ref] { // DynamoDB refuses a key named twice
			continue
		}
		asked[ref] = true
		name := t.name(ref.Table)
		logical[name] = s
		keys := wanted[name]
		keys.ConsistentRead = aws.Bool(true)
		keys.Keys = append(keys.Keys, keyOf(ref, s))
		wanted[name] = keys
	}

	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	found := make(map[item.Ref]item.Item, len(refs))
	// Without progress the tries are bounded; as long as something comes, there is an end anyway.
	for idle := 0; len(wanted) > 0; {
		t.used.call()
		out, err := t.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: wanted, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		})
		if err != nil {
			return nil, session.Fault(err, "reading %d items", len(refs))
		}
		for i := range out.ConsumedCapacity {
			c := &out.ConsumedCapacity[i]
			t.used.read(logical[aws.ToString(c.TableName)].Name, c)
		}
		came := 0
		for name, items := range out.Responses {
			s := logical[name]
			for _, attributes := range items {
				i := decode(attributes)
				ref := item.Ref{Table: s.Name, PK: i.Str(s.PK)}
				if s.SK != "" {
					ref.SK = i.Str(s.SK)
				}
				found[ref] = i
				came++
			}
		}
		if wanted = out.UnprocessedKeys; len(wanted) == 0 {
			break
		}
		if idle++; came > 0 {
			idle = 0
		}
		if idle == session.Tries {
			return nil, fault.New(fault.Throttled, nil, "reading %d items: some were left unread %d times", len(refs),
				idle)
		}
		if err := session.Wait(ctx, idle+1); err != nil {
			return nil, session.Fault(err, "reading %d items", len(refs))
		}
	}
	items := make([]item.Item, len(refs))
	for n, ref := range refs {
		items[n] = found[ref]
	}
	return items, nil
}
