package table

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/aws/session"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// maxCommit is how many writes one transaction may hold.
const maxCommit = 100

// Commit does up to 100 writes of different items, all or none.
func (t *Table) Commit(ctx context.Context, writes ...item.Write) error {
	switch {
	case len(writes) == 0:
		return nil
	case len(writes) > maxCommit:
		return fault.New(fault.Invalid, nil, "committing %d writes: %d is the most", len(writes), maxCommit)
	}
	actions := make([]types.TransactWriteItem, len(writes))
	logical := map[string]string{} // by real name
	for n, w := range writes {
		r, err := t.translate(w)
		if err != nil {
			return err
		}
		actions[n] = r.action(w)
		logical[*r.table] = w.Table
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	t.used.call()
	// The SDK gives the request a token and keeps it through all tries, so DynamoDB knows a
	// transaction that it has already done.
	out, err := t.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: actions, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		return t.cancelled(cancelled, writes)
	}
	if err != nil {
		return session.Fault(err, "committing %s and %d more", writes[0].Name, len(writes)-1)
	}
	for i := range out.ConsumedCapacity {
		c := &out.ConsumedCapacity[i]
		t.used.wrote(logical[aws.ToString(c.TableName)], c)
	}
	return nil
}

// action is the write as part of a transaction.
func (r request) action(w item.Write) types.TransactWriteItem {
	const allOld = types.ReturnValuesOnConditionCheckFailureAllOld
	switch {
	case w.Put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: r.table, Item: r.put, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case w.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: r.table, Key: r.key, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case w.Check:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: r.table, Key: r.key, ConditionExpression: r.condition, ExpressionAttributeNames: r.names,
			ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: r.table, Key: r.key, UpdateExpression: r.update, ConditionExpression: r.condition,
		ExpressionAttributeNames:  r.names,
		ExpressionAttributeValues: r.values, ReturnValuesOnConditionCheckFailure: allOld,
	}}
}

const conditionFailed = "ConditionalCheckFailed"

// cancelled turns the reasons of a transaction that was not done into an error. A condition
// that did not hold outweighs every other reason: a retry cannot help then.
func (t *Table) cancelled(c *types.TransactionCanceledException, writes []item.Write) error {
	refused := &item.Refused{Olds: map[int]item.Item{}}
	for n, why := range c.CancellationReasons {
		if aws.ToString(why.Code) != conditionFailed || n >= len(writes) {
			continue
		}
		if len(refused.Olds) == 0 {
			refused.Name = writes[n].Name
		}
		refused.Olds[n] = decode(why.Item)
	}
	if len(refused.Olds) > 0 {
		for n := range writes { // it costs what doing it would have, in the transaction's double units
			t.used.refused(writes[n].Table, refused.Olds[n])
			t.used.refused(writes[n].Table, refused.Olds[n])
		}
		return refused
	}
	return fault.New(cancelledKind(c), c, "committing %s and %d more", writes[0].Name, len(writes)-1)
}

// cancelledKind is the kind of the gravest reason: what can never work, before what is worth
// another try.
func cancelledKind(c *types.TransactionCanceledException) fault.Kind {
	kind := fault.Conflict
	for _, why := range c.CancellationReasons {
		switch code := aws.ToString(why.Code); code {
		case "", "None":
		case conditionFailed:
			return fault.Refused
		default:
			switch k := session.CodeKind(code); k {
			case fault.Conflict:
			case fault.Throttled:
				kind = k
			case "":
				return fault.Invalid
			default:
				return k
			}
		}
	}
	return kind
}
