package table_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/table"
	"punctual/shared/contract"
	"punctual/shared/item"
)

// bench is a table whose requests a test sees and answers.
type bench struct {
	*table.Table
	service *awstest.Service
	calls   []awstest.Call
}

// setup answers with each of answers in turn, and the last one for ever.
func setup(answers ...awstest.Answer) *bench {
	b := &bench{}
	b.service = awstest.New(func(c awstest.Call) awstest.Answer {
		b.calls = append(b.calls, c)
		return answers[min(c.N, len(answers))-1]
	})
	b.Table = table.New(b.service.Config(), func(logical string) string { return "test-" + logical })
	return b
}

// wantCall fails unless request n was this operation with this JSON.
func (b *bench) wantCall(t *testing.T, n int, op, body string) {
	t.Helper()
	if n >= len(b.calls) {
		t.Fatalf("%d requests were made, number %d is missing", len(b.calls), n)
	}
	var got, want any
	if err := json.Unmarshal([]byte(b.calls[n].Body), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		t.Fatalf("the test's own JSON: %v", err)
	}
	if b.calls[n].Op != op || !reflect.DeepEqual(got, want) {
		t.Errorf("request %d is %s\n%s\nwant %s\n%s", n, b.calls[n].Op, b.calls[n].Body, op, body)
	}
}

func row(id string) item.Ref   { return item.Ref{Table: contract.Jobs, PK: "acme#1", SK: id} }
func claim(pk string) item.Ref { return item.Ref{Table: contract.Claims, PK: pk} }
