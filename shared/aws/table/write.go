package table

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// maxItem is DynamoDB's limit of one item, in bytes.
const maxItem = 400 << 10

// request is a write in DynamoDB's words, before it is known whether it goes alone or in a
// transaction.
type request struct {
	table     *string
	key       map[string]types.AttributeValue
	put       map[string]types.AttributeValue
	update    *string
	condition *string
	expression
}

func (t *Table) translate(w item.Write) (request, error) {
	s, err := t.schema(w.Ref)
	if err != nil {
		return request{}, err
	}
	r := request{table: aws.String(t.name(w.Table)), key: keyOf(w.Ref, s)}
	r.condition = r.when(w.When)
	switch {
	case w.Put != nil:
		if err := fits(w, s); err != nil {
			return request{}, err
		}
		if r.put, err = encode(w.Put); err != nil {
			r.fail(err)
		}
	case !w.Delete && !w.Check:
		r.update = r.expression.update(w.Set, w.Add)
	}
	if r.err != nil {
		return request{}, fault.New(fault.Invalid, r.err, "%s of %s", w.Name, w.Ref)
	}
	return r, nil
}

// fits holds what DynamoDB would not refuse, or refuses in a way that names no kind: an item
// put under another key than the one the write is about, and one that is too large.
func fits(w item.Write, s contract.Schema) error {
	if w.Put.Str(s.PK) != w.PK || s.SK != "" && w.Put.Str(s.SK) != w.SK {
		return fault.New(fault.Invalid, nil, "%s of %s: the item's key is another", w.Name, w.Ref)
	}
	if size := w.Put.Size(); size > maxItem {
		return fault.New(fault.TooLarge, nil, "%s of %s: the item has %d bytes, %d are allowed", w.Name, w.Ref, size,
			maxItem)
	}
	return nil
}

// Write does one conditional write and returns the item as it then is (nil after a delete).
// A condition that does not hold is an *item.Refused with the item as it was.
func (t *Table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if w.Check && w.Put == nil && !w.Delete {
		return t.check(ctx, w)
	}
	r, err := t.translate(w)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	t.used.call()
	i, used, err := t.send(ctx, w, r)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		old := decode(refused.Item)
		t.used.refused(w.Table, old)
		return nil, &item.Refused{Name: w.Name, Olds: map[int]item.Item{0: old}}
	}
	if err != nil {
		return nil, session.Fault(err, "%s of %s", w.Name, w.Ref)
	}
	t.used.wrote(w.Table, used)
	return i, nil
}

// send carries out a single write and returns the item as it then is.
func (t *Table) send(ctx context.Context, w item.Write, r request) (item.Item, *types.ConsumedCapacity, error) {
	const allOld, units = types.ReturnValuesOnConditionCheckFailureAllOld, types.ReturnConsumedCapacityIndexes
	switch {
	case w.Put != nil:
		out, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: r.table, Item: r.put, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
			ReturnConsumedCapacity: units,
		})
		if err != nil {
			return nil, nil, err
		}
		return w.Put.Clone(), out.ConsumedCapacity, nil
	case w.Delete:
		out, err := t.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: r.table, Key: r.key, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
			ReturnConsumedCapacity: units,
		})
		if err != nil {
			return nil, nil, err
		}
		return nil, out.ConsumedCapacity, nil
	}
	out, err := t.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: r.table, Key: r.key, UpdateExpression: r.update, ConditionExpression: r.condition,
		ExpressionAttributeNames:  r.names,
		ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld, ReturnConsumedCapacity: units,
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, nil, err
	}
	return decode(out.Attributes), out.ConsumedCapacity, nil
}

// check is a write that only checks: a strong read shows the same as a condition, at a fifth of the cost.
func (t *Table) check(ctx context.Context, w item.Write) (item.Item, error) {
	old, err := t.Get(ctx, w.Ref)
	if err != nil {
		return nil, err
	}
	if !item.Any(w.When, old) {
		return nil, &item.Refused{Name: w.Name, Olds: map[int]item.Item{0: old}}
	}
	return old, nil
}
