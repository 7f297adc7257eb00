package table_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/fault"
	"punctual/shared/item"
)

func TestWrite_IsOneRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		write    item.Write
		op, body string
	}{
		{
			"a put of what must not exist", item.Write{
				Ref: row("j"), When: []item.All{{{Attr: "job_id", Op: item.Missing}}},
				Put: item.Item{"pk": "acme#1", "job_id": "j", "status": "SCHEDULED", "due_at": int64(-7), "empty": ""},
			}, "PutItem", `{
				"TableName": "test-jobs", "ConditionExpression": "attribute_not_exists(#a0)",
					"ExpressionAttributeNames": {"#a0": "job_id"},
				"Item": {"pk": {"S": "acme#1"}, "job_id": {"S": "j"}, "status": {"S": "SCHEDULED"},
					"due_at": {"N": "-7"}, "empty": {"S": ""}},
				"ReturnConsumedCapacity": "INDEXES", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}`,
		},
		{
			"an update under alternatives, that sets, removes and counts", item.Write{
				Ref: claim("acme#j"),
				When: []item.All{
					{{Attr: "pk", Op: item.Missing}},
					{{Attr: "attempt", Op: item.Eq, Value: int64(2)}, {Attr: "outcome", Op: item.Missing},
						{Attr: "lease_until", Op: item.Lt, Value: int64(900)}},
				},
				Set: map[string]any{"worker": "w-1", "attempt": int64(2), "outcome": nil, "cancel": nil},
				Add: map[string]int64{"token": 1, "takeovers": -1},
			}, "UpdateItem", `{
				"TableName": "test-claims", "Key": {"pk": {"S": "acme#j"}},
				"ConditionExpression":
					"(attribute_not_exists(#a0)) OR (#a1 = :v0 AND attribute_not_exists(#a2) AND #a3 < :v1)",
				"UpdateExpression": "SET #a1 = :v2, #a5 = :v3 REMOVE #a4, #a2 ADD #a6 :v4, #a7 :v5",
				"ExpressionAttributeNames": {"#a0": "pk", "#a1": "attempt", "#a2": "outcome", "#a3": "lease_until",
					"#a4": "cancel", "#a5": "worker", "#a6": "takeovers", "#a7": "token"},
				"ExpressionAttributeValues": {":v0": {"N": "2"}, ":v1": {"N": "900"}, ":v2": {"N": "2"},
					":v3": {"S": "w-1"}, ":v4": {"N": "-1"}, ":v5": {"N": "1"}},
				"ReturnConsumedCapacity": "INDEXES", "ReturnValues": "ALL_NEW",
					"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}`,
		},
		{
			"a delete on a status out of several", item.Write{
				Ref: row("j"), Delete: true, When: []item.All{{{Attr: "status", Op: item.In,
					Value: []string{"DEAD", "SUCCEEDED"}}, {Attr: "owes", Op: item.Ne, Value: "letter"}}},
			}, "DeleteItem", `{
				"TableName": "test-jobs", "Key": {"pk": {"S": "acme#1"}, "job_id": {"S": "j"}},
				"ConditionExpression": "#a0 IN (:v0, :v1) AND #a1 <> :v2", "ExpressionAttributeNames": {"#a0": "status",
					"#a1": "owes"},
				"ExpressionAttributeValues": {":v0": {"S": "DEAD"}, ":v1": {"S": "SUCCEEDED"}, ":v2": {"S": "letter"}},
				"ReturnConsumedCapacity": "INDEXES", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}`,
		},
		{
			"an unconditional update that changes nothing makes the item", item.Write{Ref: claim("c")}, "UpdateItem", `{
				"TableName": "test-claims", "Key": {"pk": {"S": "c"}},
				"ReturnConsumedCapacity": "INDEXES", "ReturnValues": "ALL_NEW",
					"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}`,
		},
		{
			"the ordered comparisons", item.Write{
				Ref: claim("c"), Delete: true, When: []item.All{{
					{Attr: "a", Op: item.Exists}, {Attr: "a", Op: item.Le, Value: "x"}, {Attr: "a", Op: item.Gt,
						Value: "y"}, {Attr: "a", Op: item.Ge, Value: int64(1)},
				}},
			}, "DeleteItem", `{
				"TableName": "test-claims", "Key": {"pk": {"S": "c"}},
				"ConditionExpression": "attribute_exists(#a0) AND #a0 <= :v0 AND #a0 > :v1 AND #a0 >= :v2",
					"ExpressionAttributeNames": {"#a0": "a"},
				"ExpressionAttributeValues": {":v0": {"S": "x"}, ":v1": {"S": "y"}, ":v2": {"N": "1"}},
				"ReturnConsumedCapacity": "INDEXES", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}`,
		},
	} {
		t.Run("sends one request for "+c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(awstest.OK(""))
			c.write.Name = "test.write"
			if _, err := b.Write(t.Context(), c.write); err != nil {
				t.Fatal(err)
			}
			b.wantCall(t, 0, c.op, c.body)
		})
	}
}

func TestWrite_ReturnsTheNewItem(t *testing.T) {
	t.Parallel()
	b := setup(awstest.OK(`{"Attributes":{"pk":{"S":"c"},"token":{"N":"9007199254740993"}}}`))
	got, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Add: map[string]int64{"token": 1}})
	if want := (item.Item{"pk": "c", "token": int64(9007199254740993)}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("an update gave %v, %v; want %v", got, err, want)
	}
	put := item.Item{"pk": "c", "n": int64(1)}
	if got, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Put: put}); err != nil ||
		!reflect.DeepEqual(got, put) {
		t.Errorf("a put gave %v, %v; want %v", got, err, put)
	}
	if got, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Delete: true}); err != nil || got != nil {
		t.Errorf("a delete gave %v, %v; want nil", got, err)
	}
}

func TestGet_LeavesOutWhatIsNeverWritten(t *testing.T) {
	t.Parallel()
	b := setup(awstest.OK(`{"Item":{"pk":{"S":"c"},"n":{"N":"12"},"fraction":{"N":"1.5"},"huge":{"N":"1E+30"},
		"flag":{"BOOL":true},"null":{"NULL":true},"map":{"M":{"a":{"S":"b"}}},"set":{"SS":["a"]},
			"bytes":{"B":"AA=="}}}`))
	got, err := b.Get(t.Context(), claim("c"))
	if want := (item.Item{"pk": "c", "n": int64(12)}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	b.wantCall(t, 0, "GetItem",
		`{"TableName":"test-claims","Key":{"pk":{"S":"c"}},"ConsistentRead":true,"ReturnConsumedCapacity":"INDEXES"}`)
}

func TestWrite_ReturnsTheOldItemWhenRefused(t *testing.T) {
	t.Parallel()
	for said, old := range map[string]item.Item{
		`"Item":{"pk":{"S":"c"},"token":{"N":"3"}}`: {"pk": "c", "token": int64(3)},
		"": nil, // nothing was there
	} {
		b := setup(awstest.Fault(http.StatusBadRequest, "ConditionalCheckFailedException", said))
		i, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Name: "claim.test", Set: map[string]any{"a": "b"},
			When: []item.All{{{Attr: "a", Op: item.Exists}}}})
		var r *item.Refused
		if !errors.As(err, &r) || r.Name != "claim.test" || !reflect.DeepEqual(r.Olds, map[int]item.Item{0: old}) ||
			i != nil {
			t.Errorf("got %v, %v; want a refusal that shows %v", i, err, old)
		}
		if fault.Retryable(err) || len(b.calls) != 1 {
			t.Errorf("a refusal was tried %d times, retryable %v", len(b.calls), fault.Retryable(err))
		}
	}
}

func TestWrite_ReadsStronglyForACheckAlone(t *testing.T) {
	t.Parallel()
	check := item.Write{
		Ref: claim("c"), Name: "test.check", Check: true, When: []item.All{{{Attr: "n", Op: item.Eq, Value: int64(1)}}},
	}
	b := setup(awstest.OK(`{"Item":{"pk":{"S":"c"},"n":{"N":"1"}}}`), awstest.OK(""))
	if i, err := b.Write(t.Context(), check); err != nil || i.Int("n") != 1 {
		t.Errorf("got %v, %v; want the item", i, err)
	}
	_, err := b.Write(t.Context(), check)
	var r *item.Refused
	if !errors.As(err, &r) || r.Olds[0] != nil {
		t.Errorf("of an absent item: %v; want a refusal that shows nil", err)
	}
	b.wantCall(t, 1, "GetItem",
		`{"TableName":"test-claims","Key":{"pk":{"S":"c"}},"ConsistentRead":true,"ReturnConsumedCapacity":"INDEXES"}`)
}

func TestWrite_WaitsOutThrottlesAndConflicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code string
		kind fault.Kind
	}{
		{"ProvisionedThroughputExceededException", fault.Throttled},
		{"ThrottlingException", fault.Throttled},
		{"RequestLimitExceeded", fault.Throttled},
		{"TransactionConflictException", fault.Conflict},
	} {
		synctest.Test(t, func(t *testing.T) {
			refused := awstest.Fault(http.StatusBadRequest, c.code, "")
			b := setup(refused, refused, refused, awstest.OK(""))
			if _, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Delete: true}); err != nil ||
				len(b.calls) != 4 {
				t.Errorf("%s three times: %v after %d tries; want success at the fourth", c.code, err, len(b.calls))
			}
			b = setup(refused)
			_, err := b.Write(t.Context(), item.Write{Ref: claim("c"), Name: "test.write", Delete: true})
			if fault.KindOf(err) != c.kind || len(b.calls) != session.Tries ||
				!strings.Contains(err.Error(), "test.write of claims/c/") {
				t.Errorf("%s for ever: %v after %d tries; want kind %s after %d", c.code, err, len(b.calls), c.kind,
					session.Tries)
			}
		})
	}
}

// A claim whose answer was lost is sent again by the SDK, and refused by its own first try. The
// item in the refusal carries the caller's nonce, which is how the caller knows its own.
func TestWrite_ShowsItsOwnNonceAfterALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(awstest.Lost(), awstest.Fault(http.StatusBadRequest, "ConditionalCheckFailedException",
			`"Item":{"pk":{"S":"c"},"attempt":{"N":"1"},"token":{"N":"1"},"nonce":{"S":"mine"}}`))
		_, err := b.Write(t.Context(), item.Write{
			Ref: claim("c"), Name: "test.claim", Set: map[string]any{"attempt": int64(1),
				"nonce": "mine"}, Add: map[string]int64{"token": 1},
			When: []item.All{{{Attr: "pk", Op: item.Missing}}},
		})
		var r *item.Refused
		if !errors.As(err, &r) || r.Olds[0].Str("nonce") != "mine" || len(b.calls) != 2 {
			t.Errorf("got %v after %d tries; want a refusal that shows our own nonce", err, len(b.calls))
		}
	})
}

func TestWrite_RefusesWhatDynamoDBWouldMisunderstand(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 400<<10)
	for name, c := range map[string]struct {
		write item.Write
		kind  fault.Kind
	}{
		"another key in the item": {item.Write{Ref: row("j"), Put: item.Item{"pk": "acme#1", "job_id": "k"}},
			fault.Invalid},
		"no sort key": {item.Write{Ref: item.Ref{Table: "jobs", PK: "x"}, Delete: true},
			fault.Invalid},
		"a sort key too many": {item.Write{Ref: item.Ref{Table: "claims", PK: "x", SK: "y"}, Delete: true},
			fault.Invalid},
		"an unknown table": {item.Write{Ref: item.Ref{Table: "nowhere", PK: "x"}, Delete: true},
			fault.NotFound},
		"a plain int": {item.Write{Ref: claim("c"), Set: map[string]any{"a": 1}}, fault.Invalid},
		"a float in a put": {item.Write{Ref: claim("c"), Put: item.Item{"pk": "c", "a": 1.5}},
			fault.Invalid},
		"a bool in a condition": {item.Write{Ref: claim("c"), Delete: true,
			When: []item.All{{{Attr: "a", Op: item.Eq, Value: true}}}}, fault.Invalid},
		"an unknown comparison": {item.Write{Ref: claim("c"), Delete: true,
			When: []item.All{{{Attr: "a", Op: "~", Value: "x"}}}}, fault.Invalid},
		"an empty alternative": {item.Write{Ref: claim("c"), Delete: true, When: []item.All{{}}},
			fault.Invalid},
		"one of none": {item.Write{Ref: claim("c"), Delete: true,
			When: []item.All{{{Attr: "a", Op: item.In, Value: []string{}}}}}, fault.Invalid},
		"one of more than a hundred": {item.Write{Ref: claim("c"), Delete: true,
			When: []item.All{{{Attr: "a", Op: item.In, Value: make([]string, 101)}}}}, fault.Invalid},
		"an item over DynamoDB's size": {item.Write{Ref: claim("c"), Put: item.Item{"pk": "c", "a": big}},
			fault.TooLarge},
	} {
		b := setup(awstest.OK(""))
		if _, err := b.Write(t.Context(), c.write); fault.KindOf(err) != c.kind || len(b.calls) != 0 {
			t.Errorf("%s: %v after %d requests; want kind %s and none", name, err, len(b.calls), c.kind)
		}
		if err := b.Commit(t.Context(), c.write); fault.KindOf(err) != c.kind || len(b.calls) != 0 {
			t.Errorf("%s in a commit: %v after %d requests; want kind %s and none", name, err, len(b.calls), c.kind)
		}
	}
}

func TestTables_CountUnitsByTable(t *testing.T) {
	t.Parallel()
	b := setup(
		awstest.OK(`{"ConsumedCapacity":{"TableName":"test-jobs","CapacityUnits":3,"Table":{"CapacityUnits":1},`+
			`"GlobalSecondaryIndexes":{"due":{"CapacityUnits":2}}}}`),
		awstest.OK(`{"ConsumedCapacity":{"TableName":"test-claims","CapacityUnits":0.5,`+
			`"Table":{"CapacityUnits":0.5}}}`),
		awstest.Fault(http.StatusBadRequest, "ConditionalCheckFailedException",
			`"Item":{"pk":{"S":"c"},"a":{"S":"`+strings.Repeat("x", 1500)+`"}}`),
	)
	_, _ = b.Write(t.Context(), item.Write{Ref: row("j"), Put: item.Item{"pk": "acme#1", "job_id": "j"}})
	_, _ = b.Get(t.Context(), claim("c"))
	_, _ = b.Write(t.Context(), item.Write{
		Ref: claim("c"), Delete: true, When: []item.All{{{Attr: "a", Op: item.Missing}}},
	})
	got := b.Counts()
	want := item.Counts{TableCalls: 3, Tables: map[string]item.Units{"jobs": {Write: 1, IndexWrite: 2},
		"claims": {Read: 0.5, Write: 2}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v; want %+v", got, want)
	}
}
