package executor_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/workers/executor"
)

// outbox is the queues of tenants: orders and orders.fifo are acme's, theirs is another's.
func outbox(t *testing.T) (*memory.World, executor.Executor) {
	t.Helper()
	w := memory.New(memory.Options{})
	t.Cleanup(w.Close)
	w.TenantQueues().Put("orders", "acme")
	w.TenantQueues().Put("orders.fifo", "acme")
	w.TenantQueues().Put("theirs", "zeta")
	w.TenantQueues().Put("untagged", "")
	return w, executor.Standard(executor.Options{Queues: w.TenantQueues()})["sqs"]
}

func TestSQS_SendsTheMessageOfThePayload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, body, group string }{
		"a text goes as it is":         {`{"queue":"orders","message":"a \"b\" ü"}`, `a "b" ü`, ""},
		"an object goes as JSON":       {`{"queue":"orders","message":{"n":1.0,"s":"<b>"}}`, `{"n":1.0,"s":"<b>"}`, ""},
		"null goes as JSON":            {`{"queue":"orders","message":null}`, `null`, ""},
		"a group is a label":           {`{"queue":"orders","message":"m","group":"g:1"}`, "m", "g:1"},
		"U+FFFF in JSON is an escape":  {"{\"queue\":\"orders\",\"message\":[\"\uffff\"]}", `["\uffff"]`, ""},
		"a FIFO queue takes the group": {`{"queue":"orders.fifo","message":"m","group":"g"}`, "m", "g"},
		"a task is its default group":  {`{"queue":"orders.fifo","message":"m"}`, "m", "ship"},
	} {
		t.Run("sends a message: "+name, func(t *testing.T) {
			t.Parallel()
			w, sqs := outbox(t)
			of := work(c.payload)
			of.Task = "ship"
			result, err := sqs.Run(t.Context(), of)
			if err != nil || !strings.HasPrefix(string(result), `{"message_id":"0`) {
				t.Fatalf("got %s, %v", result, err)
			}
			got := append(w.TenantQueues().Sent("orders"), w.TenantQueues().Sent("orders.fifo")...)
			if len(got) != 1 || got[0].Body != c.body || got[0].Group != c.group {
				t.Errorf("sent %+v", got)
			}
		})
	}
}

func TestSQS_NamesTheAttemptInAttributes(t *testing.T) {
	t.Parallel()
	w, sqs := outbox(t)
	of := work(`{"queue":"orders","message":"m"}`)
	of.DueAt = time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)
	if _, err := sqs.Run(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	of.NominalAt = of.DueAt.Add(-time.Second)
	if _, err := sqs.Run(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Idempotency-Key": "01JDMG000000000000000000H1", "Punctual-Job-Id": "01JDMG000000000000000000J1",
		"Punctual-Attempt": "1", "Punctual-Token": "7", "Punctual-Due-At": "2027-03-28T01:00:00.000Z",
	}
	sent := w.TenantQueues().Sent("orders")
	if !maps.Equal(sent[0].Attributes, want) {
		t.Errorf("a job of no schedule: %v", sent[0].Attributes)
	}
	want["Punctual-Nominal-At"] = "2027-03-28T00:59:59.000Z"
	if !maps.Equal(sent[1].Attributes, want) {
		t.Errorf("a job of a schedule: %v", sent[1].Attributes)
	}
}

func TestSQS_SendsAnAttemptOnceToAFIFOQueue(t *testing.T) {
	t.Parallel()
	w, sqs := outbox(t)
	of := work(`{"queue":"orders.fifo","message":"m"}`)
	of.Task = "ship"
	for _, attempt := range []struct{ n, token int64 }{{1, 7}, {1, 8}, {2, 9}} { // the second took over from the first
		of.Attempt, of.Token = attempt.n, attempt.token
		if _, err := sqs.Run(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, m := range w.TenantQueues().Sent("orders.fifo") {
		ids = append(ids, m.Deduplication)
	}
	if strings.Join(ids, " ") != "01JDMG000000000000000000J1-1 01JDMG000000000000000000J1-2" {
		t.Errorf("the queue holds %q", ids)
	}
}

func TestSQS_SaysWhatBecomesOfAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		payload, op string
		fails       fault.Kind
		code        string
		permanent   bool
	}{
		"another tenant's queue": {`{"queue":"theirs","message":"m"}`, "", "", executor.CodeForbiddenQueue, true},
		"a queue without a tag":  {`{"queue":"untagged","message":"m"}`, "", "", executor.CodeForbiddenQueue, true},
		"an absent queue":        {`{"queue":"absent","message":"m"}`, "", "", executor.CodeForbiddenQueue, true},
		"a tag that may not be read": {`{"queue":"orders","message":"m"}`, memory.TenantQueueAllowed, fault.Forbidden,
			executor.CodeForbiddenQueue, true},
		"a throttled look": {`{"queue":"orders","message":"m"}`, memory.TenantQueueAllowed, fault.Throttled,
			executor.CodeQueueRefused, false},
		"a throttled send": {`{"queue":"orders","message":"m"}`, memory.TenantQueueSend, fault.Throttled,
			executor.CodeQueueRefused, false},
		"an outage": {`{"queue":"orders","message":"m"}`, memory.TenantQueueSend, fault.Unavailable,
			executor.CodeQueueRefused, false},
		"a missing grant": {`{"queue":"orders","message":"m"}`, memory.TenantQueueSend, fault.Forbidden,
			executor.CodeQueueRefused, true},
		"a queue that went": {`{"queue":"orders","message":"m"}`, memory.TenantQueueSend, fault.NotFound,
			executor.CodeQueueRefused, true},
		"a limit of the queue": {`{"queue":"orders","message":"m"}`, memory.TenantQueueSend, fault.Invalid,
			executor.CodeQueueRefused, true},
		"no payload": {``, "", "", job.CodeUnreadablePayload, true},
		"no queue":   {`{"message":"m"}`, "", "", job.CodeUnreadablePayload, true},
		"a queue by its URL": {`{"queue":"https://sqs/1/orders","message":"m"}`, "", "",
			job.CodeUnreadablePayload, true},
		"an unknown field": {`{"queue":"orders","message":"m","delay":1}`, "", "", job.CodeUnreadablePayload,
			true},
		"no message":       {`{"queue":"orders"}`, "", "", job.CodeUnreadablePayload, true},
		"an empty message": {`{"queue":"orders","message":""}`, "", "", job.CodeUnreadablePayload, true},
		"a NUL in a text": {`{"queue":"orders","message":"\u0000"}`, "", "", job.CodeUnreadablePayload,
			true},
	} {
		t.Run("a send that fails: "+name, func(t *testing.T) {
			t.Parallel()
			w, sqs := outbox(t)
			w.SetFaults(func(call memory.Call) memory.Fault {
				if call.Op == c.op {
					return memory.Fault{Fail: c.fails}
				}
				return memory.Fault{}
			})
			_, err := sqs.Run(t.Context(), work(c.payload))
			requireFailure(t, err, c.code, c.permanent)
			if n := len(w.TenantQueues().Sent("orders")); n != 0 {
				t.Errorf("%d messages were sent", n)
			}
		})
	}
}

func TestSQS_AnswersTheSameForAForeignQueueAndAnAbsentOne(t *testing.T) {
	t.Parallel()
	_, sqs := outbox(t)
	_, foreign := sqs.Run(t.Context(), work(`{"queue":"theirs","message":"m"}`))
	_, absent := sqs.Run(t.Context(), work(`{"queue":"absent","message":"m"}`))
	if foreign.Error() != absent.Error() {
		t.Errorf("%q and %q differ", foreign, absent)
	}
}

func TestSQS_FailsForGoodWhereThereAreNoQueues(t *testing.T) {
	t.Parallel()
	_, err := executor.Standard(executor.Options{})["sqs"].Run(t.Context(), work(`{"queue":"orders","message":"m"}`))
	if f := requireFailure(t, err, executor.CodeNotAvailable, true); f.Message != "this deployment sends to no queues" {
		t.Errorf("message %q", f.Message)
	}
}

func TestSQS_SaysWhyItsContextEnded(t *testing.T) {
	t.Parallel()
	cause := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	w, sqs := outbox(t)
	w.SetFaults(func(call memory.Call) memory.Fault {
		if call.Op == memory.TenantQueueSend {
			cancel(cause)
			return memory.Fault{Hang: true}
		}
		return memory.Fault{}
	})
	if _, err := sqs.Run(ctx, work(`{"queue":"orders","message":"m"}`)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}
