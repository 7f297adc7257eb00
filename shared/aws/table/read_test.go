package table_test

import (
	"encoding/base64"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/fault"
	"punctual/shared/item"
)

func TestGetMany_ReadsUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(
			awstest.OK(`{"Responses":{"test-claims":[{"pk":{"S":"b"}}]},`+
				`"UnprocessedKeys":{"test-claims":{"ConsistentRead":true,"Keys":[{"pk":{"S":"a"}}]}}}`),
			awstest.OK(`{"Responses":{},"UnprocessedKeys":{"test-claims":{"ConsistentRead":true,`+
				`"Keys":[{"pk":{"S":"a"}}]}}}`),
			awstest.OK(`{"Responses":{"test-claims":[{"pk":{"S":"a"},"n":{"N":"1"}}]}}`),
		)
		got, err := b.GetMany(t.Context(), []item.Ref{claim("a"), claim("b"), row("j"), claim("a")})
		a := item.Item{"pk": "a", "n": int64(1)}
		if want := []item.Item{a, {"pk": "b"}, nil, a}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
		b.wantCall(t, 0, "BatchGetItem", `{"ReturnConsumedCapacity":"INDEXES","RequestItems":{
			"test-claims":{"ConsistentRead":true,"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}]},
			"test-jobs":{"ConsistentRead":true,"Keys":[{"pk":{"S":"acme#1"},"job_id":{"S":"j"}}]}}}`)
		b.wantCall(t, 2, "BatchGetItem",
			`{"ReturnConsumedCapacity":"INDEXES","RequestItems":{"test-claims":{"ConsistentRead":true,`+
				`"Keys":[{"pk":{"S":"a"}}]}}}`)
	})
}

func TestGetMany_GivesUpWhenNothingComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(awstest.OK(`{"UnprocessedKeys":{"test-claims":{"ConsistentRead":true,"Keys":[{"pk":{"S":"a"}}]}}}`))
		if _, err := b.GetMany(t.Context(), []item.Ref{claim("a")}); fault.KindOf(err) != fault.Throttled ||
			len(b.calls) != session.Tries {
			t.Errorf("%v after %d tries; want throttled after %d", err, len(b.calls), session.Tries)
		}
	})
	b := setup(awstest.OK(""))
	if _, err := b.GetMany(t.Context(), make([]item.Ref, 101)); fault.KindOf(err) != fault.Invalid ||
		len(b.calls) != 0 {
		t.Errorf("of 101: %v; want invalid", err)
	}
}

func TestQuery_IsOneRequest(t *testing.T) {
	t.Parallel()
	const names, values = `"ExpressionAttributeNames": `, `"ExpressionAttributeValues": `
	for _, c := range []struct {
		name  string
		query item.Query
		body  string
	}{
		{"all of a partition", item.Query{Table: "tasks", PK: "p", Consistent: true},
			`"TableName": "test-tasks", "ConsistentRead": true, "ScanIndexForward": true, "KeyConditionExpression": ` +
				`"#a0 = :v0",` +
				names + `{"#a0": "pk"},` + values + `{":v0": {"S": "p"}}`},
		{"from a text on, newest first", item.Query{Table: "tasks", PK: "p", From: "b", Descending: true, Limit: 5},
			`"TableName": "test-tasks", "ScanIndexForward": false, "Limit": 5, "KeyConditionExpression": "#a0 = :v0 ` +
				`AND #a1 >= :v1",` +
				names + `{"#a0": "pk", "#a1": "sk"},` + values + `{":v0": {"S": "p"}, ":v1": {"S": "b"}}`},
		{"up to a text", item.Query{Table: "tasks", PK: "p", To: "b"},
			`"TableName": "test-tasks", "ScanIndexForward": true, "KeyConditionExpression": "#a0 = :v0 AND #a1 < ` +
				`:v1",` +
				names + `{"#a0": "pk", "#a1": "sk"},` + values + `{":v0": {"S": "p"}, ":v1": {"S": "b"}}`},
		{"between texts", item.Query{Table: "tasks", PK: "p", From: "a", To: "b"},
			`"TableName": "test-tasks", "ScanIndexForward": true, "KeyConditionExpression": "#a0 = :v0 AND #a1 ` +
				`BETWEEN :v1 AND :v2",` +
				names + `{"#a0": "pk", "#a1": "sk"},` + values +
				`{":v0": {"S": "p"}, ":v1": {"S": "a"}, ":v2": {"S": "b"}}`},
		{"between numbers of an index", item.Query{Table: "jobs", Index: "due", PK: "s", From: int64(5), To: int64(9)},
			`"TableName": "test-jobs", "IndexName": "due", "ScanIndexForward": true, "KeyConditionExpression": "#a0 ` +
				`= :v0 AND #a1 BETWEEN :v1 AND :v2",` +
				names + `{"#a0": "wake_slice", "#a1": "wake_at"},` + values +
				`{":v0": {"S": "s"}, ":v1": {"N": "5"}, ":v2": {"N": "8"}}`},
	} {
		b := setup(awstest.OK(`{"Items":[]}`))
		if page, err := b.Query(t.Context(), c.query); err != nil || page.Cursor != "" || len(page.Items) != 0 {
			t.Errorf("%s: %v, %v", c.name, page, err)
		}
		b.wantCall(t, 0, "Query", `{"ReturnConsumedCapacity": "INDEXES", `+c.body+`}`)
	}
}

func TestQuery_EndsARangeBeforeItsTo(t *testing.T) {
	t.Parallel()
	const items = `{"Items":[{"sk":{"S":"b"}},{"sk":{"S":"c"}}],"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"S":"c"}}}`
	b := setup(awstest.OK(items))
	page, err := b.Query(t.Context(), item.Query{Table: "tasks", PK: "p", From: "a", To: "c"})
	if err != nil || len(page.Items) != 1 || page.Cursor != "" {
		t.Errorf("upwards: %v, %v; want b alone, and the end", page, err)
	}
	b = setup(awstest.OK(`{"Items":[{"sk":{"S":"c"}}],"LastEvaluatedKey":{"pk":{"S":"p"},"sk":{"S":"c"}}}`))
	page, err = b.Query(t.Context(), item.Query{Table: "tasks", PK: "p", From: "a", To: "c", Descending: true})
	if err != nil || len(page.Items) != 0 || page.Cursor == "" {
		t.Errorf("downwards: %v, %v; want nothing yet, and a cursor", page, err)
	}
	for _, q := range []item.Query{
		{Table: "tasks", PK: "p", From: "c", To: "c"},
		{Table: "tasks", PK: "p", From: "d", To: "c"},
		{Table: "jobs", Index: "due", PK: "p", From: int64(3), To: int64(3)},
	} {
		b := setup(awstest.OK(items))
		if page, err := b.Query(t.Context(), q); err != nil || len(page.Items) != 0 || page.Cursor != "" ||
			len(b.calls) != 0 {
			t.Errorf("an empty range: %v, %v after %d requests; want nothing and none", page, err, len(b.calls))
		}
	}
}

func TestQuery_ContinuesAtItsCursor(t *testing.T) {
	t.Parallel()
	last := `{"pk":{"S":"acme#1"},"job_id":{"S":"j"},"wake_slice":{"S":"s"},"wake_at":{"N":"9007199254740993"}}`
	b := setup(awstest.OK(`{"Items":[],"LastEvaluatedKey":`+last+`}`), awstest.OK(`{"Items":[]}`))
	q := item.Query{Table: "jobs", Index: "due", PK: "s"}
	page, err := b.Query(t.Context(), q)
	if err != nil || page.Cursor == "" {
		t.Fatalf("%v, %v; want an empty page with a cursor", page, err)
	}
	q.Cursor = page.Cursor
	if _, err := b.Query(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	b.wantCall(t, 1, "Query", `{"ReturnConsumedCapacity": "INDEXES", "TableName": "test-jobs", "IndexName": "due",
		"ScanIndexForward": true,
		"KeyConditionExpression": "#a0 = :v0", "ExpressionAttributeNames": {"#a0": "wake_slice"},
			"ExpressionAttributeValues": {":v0": {"S": "s"}},
		"ExclusiveStartKey": `+last+`}`)
}

func TestQuery_RefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	cursor := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, c := range map[string]struct {
		query item.Query
		kind  fault.Kind
	}{
		"an unknown table": {item.Query{Table: "nowhere", PK: "p"}, fault.NotFound},
		"an unknown index": {item.Query{Table: "jobs", Index: "nowhere", PK: "p"}, fault.Invalid},
		"a consistent read of an index": {item.Query{Table: "jobs", Index: "due", PK: "p", Consistent: true},
			fault.Invalid},
		"no partition":               {item.Query{Table: "jobs"}, fault.Invalid},
		"a negative limit":           {item.Query{Table: "jobs", PK: "p", Limit: -1}, fault.Invalid},
		"a text where numbers are":   {item.Query{Table: "jobs", Index: "due", PK: "p", From: "x"}, fault.Invalid},
		"a number where texts are":   {item.Query{Table: "jobs", PK: "p", To: int64(1)}, fault.Invalid},
		"a plain int":                {item.Query{Table: "jobs", Index: "due", PK: "p", To: 1}, fault.Invalid},
		"a bound without a sort key": {item.Query{Table: "claims", PK: "p", To: "x"}, fault.Invalid},
		"a cursor that is no base64": {item.Query{Table: "jobs", PK: "p", Cursor: "ä"}, fault.Invalid},
		"a cursor that is no JSON":   {item.Query{Table: "jobs", PK: "p", Cursor: cursor("x")}, fault.Invalid},
		"a cursor of something else": {item.Query{Table: "jobs", PK: "p", Cursor: cursor(`{"pk":true}`)},
			fault.Invalid},
		"a cursor with a key of a shape": {item.Query{Table: "jobs", PK: "p", Cursor: cursor(`{"pk":{"S":"x"}}`)},
			fault.Invalid},
		"a cursor with a broken number": {item.Query{Table: "jobs", PK: "p", Cursor: cursor(`{"pk":1.5}`)},
			fault.Invalid},
	} {
		b := setup(awstest.OK(`{"Items":[]}`))
		if _, err := b.Query(t.Context(), c.query); fault.KindOf(err) != c.kind || len(b.calls) != 0 {
			t.Errorf("%s: %v after %d requests; want kind %s and none", name, err, len(b.calls), c.kind)
		}
	}
	b := setup(awstest.Fault(http.StatusBadRequest, "ValidationException", ""))
	if _, err := b.Query(t.Context(), item.Query{Table: "jobs", PK: "p"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("what DynamoDB refuses: %v; want invalid", err)
	}
}
