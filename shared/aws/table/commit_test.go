package table_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/fault"
	"punctual/shared/item"
)

func TestCommit_IsOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(awstest.OK(`{"ConsumedCapacity":[{"TableName":"test-jobs","CapacityUnits":6,` +
		`"GlobalSecondaryIndexes":{"due":{"CapacityUnits":2}}},{"TableName":"test-claims","CapacityUnits":2}]}`))
	there := []item.All{{{Attr: "a", Op: item.Exists}}}
	err := b.Commit(t.Context(),
		item.Write{Ref: row("j"), Put: item.Item{"pk": "acme#1", "job_id": "j"},
			When: []item.All{{{Attr: "job_id", Op: item.Missing}}}},
		item.Write{Ref: claim("c"), Set: map[string]any{"a": "b"}, When: there},
		item.Write{Ref: claim("d"), Delete: true},
		item.Write{Ref: row("k"), Check: true, When: there},
	)
	if err != nil {
		t.Fatal(err)
	}
	token := b.calls[0].Field("ClientRequestToken")
	if token == "" {
		t.Error("the transaction has no token: a repeated one would be done twice")
	}
	b.wantCall(t, 0, "TransactWriteItems", `{"ClientRequestToken": "`+token+`", "ReturnConsumedCapacity": "INDEXES",
		"TransactItems": [
		{"Put": {"TableName": "test-jobs", "Item": {"pk": {"S": "acme#1"}, "job_id": {"S": "j"}},
			"ConditionExpression": "attribute_not_exists(#a0)",
			"ExpressionAttributeNames": {"#a0": "job_id"}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		{"Update": {"TableName": "test-claims", "Key": {"pk": {"S": "c"}}, "UpdateExpression": "SET #a0 = :v0",
			"ConditionExpression": "attribute_exists(#a0)",
			"ExpressionAttributeNames": {"#a0": "a"}, "ExpressionAttributeValues": {":v0": {"S": "b"}},
				"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		{"Delete": {"TableName": "test-claims", "Key": {"pk": {"S": "d"}},
			"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}},
		{"ConditionCheck": {"TableName": "test-jobs", "Key": {"pk": {"S": "acme#1"}, "job_id": {"S": "k"}},
			"ConditionExpression": "attribute_exists(#a0)",
			"ExpressionAttributeNames": {"#a0": "a"}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}]}`)
	want := item.Counts{TableCalls: 1, Tables: map[string]item.Units{"jobs": {Write: 4, IndexWrite: 2},
		"claims": {Write: 2}}}
	if got := b.Counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v; want %+v", got, want)
	}
}

// cancelled is the answer of a transaction that was not done, with a reason for each write.
func cancelled(t *testing.T, reasons ...map[string]any) awstest.Answer {
	t.Helper()
	b, err := json.Marshal(reasons)
	if err != nil {
		t.Fatal(err)
	}
	return awstest.Fault(http.StatusBadRequest, "TransactionCanceledException", `"CancellationReasons":`+string(b))
}

func because(code string) map[string]any { return map[string]any{"Code": code} }

func conditionOf(attributes map[string]any) map[string]any {
	return map[string]any{"Code": "ConditionalCheckFailed", "Item": attributes}
}

func two() []item.Write {
	return []item.Write{{Ref: row("j"), Name: "first", Set: map[string]any{"a": "1"}},
		{Ref: claim("c"), Name: "second", Set: map[string]any{"a": "1"}}}
}

func TestCommit_ReturnsEachOldItemWhenRefused(t *testing.T) {
	t.Parallel()
	there := map[string]any{"pk": map[string]string{"S": "c"}}
	for _, c := range []struct {
		name    string
		reasons []map[string]any
		first   string
		olds    map[int]item.Item
	}{
		{"one of two", []map[string]any{because("None"), conditionOf(there)}, "second",
			map[int]item.Item{1: {"pk": "c"}}},
		{"both, one absent", []map[string]any{conditionOf(nil), conditionOf(there)}, "first",
			map[int]item.Item{0: nil, 1: {"pk": "c"}}},
		{"beside a conflict", []map[string]any{because("TransactionConflict"), conditionOf(there)}, "second",
			map[int]item.Item{1: {"pk": "c"}}},
		{"beside a throttle", []map[string]any{conditionOf(there), because("ThrottlingError")}, "first",
			map[int]item.Item{0: {"pk": "c"}}},
	} {
		b := setup(cancelled(t, c.reasons...))
		err := b.Commit(t.Context(), two()...)
		var r *item.Refused
		if !errors.As(err, &r) || r.Name != c.first || !reflect.DeepEqual(r.Olds, c.olds) || len(b.calls) != 1 {
			t.Errorf("%s: %v after %d tries; want a refusal of %q that shows %v", c.name, err, len(b.calls), c.first,
				c.olds)
		}
	}
}

func TestCommit_RetriesUnderTheSameToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
	}{
		"a conflict": {cancelled(t, because("None"), because("TransactionConflict")), fault.Conflict},
		"a throttle": {cancelled(t, because("ThrottlingError"), because("None")), fault.Throttled},
		"a full partition": {cancelled(t, because("ProvisionedThroughputExceeded"),
			because("TransactionConflict")), fault.Throttled},
		"one that is still at work": {awstest.Fault(http.StatusBadRequest, "TransactionInProgressException", ""),
			fault.Conflict},
		"a lost answer": {awstest.Lost(), fault.Unavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(c.answer, c.answer, awstest.OK(""))
			if err := b.Commit(t.Context(), two()...); err != nil || len(b.calls) != 3 {
				t.Errorf("%s, twice: %v after %d tries; want success at the third", name, err, len(b.calls))
			}
			for n := range b.calls {
				if b.calls[n].Field("ClientRequestToken") != b.calls[0].Field("ClientRequestToken") {
					t.Errorf("%s: try %d has another token than the first: it could be done twice", name, n+1)
				}
			}
			b = setup(c.answer)
			if err := b.Commit(t.Context(), two()...); fault.KindOf(err) != c.kind || len(b.calls) != session.Tries {
				t.Errorf("%s for ever: %v after %d tries; want kind %s after %d", name, err, len(b.calls), c.kind,
					session.Tries)
			}
		})
	}
}

func TestCommit_TriesOnceWhatCanNeverWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
	}{
		"a reason of validation": {cancelled(t, because("ValidationError"), because("TransactionConflict")),
			fault.Invalid},
		"an item collection": {cancelled(t, because("None"), because("ItemCollectionSizeLimitExceeded")),
			fault.TooLarge},
		"a request of nonsense": {awstest.Fault(http.StatusBadRequest, "ValidationException", ""), fault.Invalid},
		"a missing grant": {awstest.Fault(http.StatusBadRequest, "AccessDeniedException", ""),
			fault.Forbidden},
		"a token of other content": {awstest.Fault(http.StatusBadRequest, "IdempotentParameterMismatchException", ""),
			fault.Invalid},
	} {
		b := setup(c.answer)
		if err := b.Commit(t.Context(), two()...); fault.KindOf(err) != c.kind || len(b.calls) != 1 {
			t.Errorf("%s: %v after %d tries; want kind %s at once", name, err, len(b.calls), c.kind)
		}
	}
}

func TestCommit_TakesAHundredWrites(t *testing.T) {
	t.Parallel()
	b := setup(awstest.OK(""))
	if err := b.Commit(t.Context(), make([]item.Write, 101)...); fault.KindOf(err) != fault.Invalid {
		t.Errorf("of 101: %v; want invalid", err)
	}
	if err := b.Commit(t.Context()); err != nil || len(b.calls) != 0 {
		t.Errorf("of none: %v after %d requests", err, len(b.calls))
	}
}
