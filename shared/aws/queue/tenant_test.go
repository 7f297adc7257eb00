package queue_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/queue"
	"punctual/shared/executor"
	"punctual/shared/fault"
)

// account is an SQS with one queue, its tags as the test has them.
type account struct {
	owner string // "" for no tag
	asked int    // how often for the tags
	sends []string
	send  func(n int) awstest.Answer // nil: taken
}

func (a *account) answer(c awstest.Call) awstest.Answer {
	switch c.Op {
	case "GetQueueUrl":
		if c.Field("QueueName") == "absent" {
			return awstest.Fault(http.StatusBadRequest, "QueueDoesNotExist", "")
		}
		return awstest.OK(`{"QueueUrl":"https://sqs/1/` + c.Field("QueueName") + `"}`)
	case "ListQueueTags":
		a.asked++
		if a.owner == "" {
			return awstest.OK(`{"Tags":{"other":"acme"}}`)
		}
		return awstest.OK(`{"Tags":{"punctual:tenant":"` + a.owner + `"}}`)
	case "SendMessage":
		a.sends = append(a.sends, c.Body)
		if a.send != nil {
			return a.send(len(a.sends))
		}
		return awstest.OK(`{"MessageId":"m-1"}`)
	}
	return awstest.Fault(http.StatusBadRequest, "InvalidParameterValue", "")
}

func (a *account) open() *queue.Tenants { return queue.NewTenants(awstest.New(a.answer).Config()) }

func TestTenants_OpenAQueueToWhomItsTagNames(t *testing.T) {
	t.Parallel()
	//nolint:gocritic // the space is what is tried
	for owner, want := range map[string]bool{"acme": true, "*": true, "Acme": false, "acme ": false, "acm": false,
		"zeta": false, "": false} {
		a := &account{owner: owner}
		if got, err := a.open().Allowed(t.Context(), "orders", "acme"); got != want || err != nil {
			t.Errorf("tagged %q acme may send: %v, %v; want %v", owner, got, err, want)
		}
	}
	a := &account{}
	if got, err := a.open().Allowed(t.Context(), "orders", ""); got || err != nil {
		t.Errorf("no tenant may send to what has no tag: %v, %v", got, err)
	}
	if _, err := a.open().Allowed(t.Context(), "absent", "acme"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an absent queue: %v; want not found", err)
	}
}

func TestTenants_AskForATagOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &account{owner: "acme"}
		tenants := a.open()
		allowed := func() bool {
			ok, err := tenants.Allowed(t.Context(), "orders", "acme")
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		allowed()
		a.owner = "zeta"
		if !allowed() || a.asked != 1 {
			t.Errorf("asked %d times within the minute", a.asked)
		}
		time.Sleep(queue.OwnerAge)
		if allowed() || a.asked != 2 {
			t.Errorf("the new owner was not seen after a minute, asked %d times", a.asked)
		}
	})
}

func TestTenants_SendAMessageWithAllThatItHas(t *testing.T) {
	t.Parallel()
	a := &account{owner: "acme"}
	id, err := a.open().Send(t.Context(), "orders.fifo", executor.Message{
		Body: "ü", Group: "g", Deduplication: "j-1", Attributes: map[string]string{"Punctual-Attempt": "1"},
	})
	if id != "m-1" || err != nil {
		t.Errorf("got %q, %v", id, err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(a.sends[0]), &got); err != nil {
		t.Fatal(err)
	}
	attribute := got["MessageAttributes"].(map[string]any)["Punctual-Attempt"].(map[string]any)
	if got["QueueUrl"] != "https://sqs/1/orders.fifo" || got["MessageBody"] != "ü" || got["MessageGroupId"] != "g" ||
		got["MessageDeduplicationId"] != "j-1" || attribute["DataType"] != "String" || attribute["StringValue"] != "1" {
		t.Errorf("sent %s", a.sends[0])
	}
	_, _ = a.open().Send(t.Context(), "orders", executor.Message{Body: "x"})
	got = nil
	if err := json.Unmarshal([]byte(a.sends[1]), &got); err != nil {
		t.Fatal(err)
	}
	if got["MessageGroupId"] != nil || got["MessageDeduplicationId"] != nil {
		t.Errorf("without a group sent %s", a.sends[1])
	}
}

func TestTenants_SendOnceAndSayWhyNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
	}{
		"the queue is gone":      {awstest.Fault(http.StatusBadRequest, "QueueDoesNotExist", ""), fault.NotFound},
		"a grant is missing":     {awstest.Fault(http.StatusForbidden, "AccessDeniedException", ""), fault.Forbidden},
		"its key is not granted": {awstest.Fault(http.StatusBadRequest, "KmsAccessDenied", ""), fault.Forbidden},
		"it is too long":         {awstest.Fault(http.StatusBadRequest, "InvalidParameterValue", ""), fault.Invalid},
		"too many are sent":      {awstest.Fault(http.StatusBadRequest, "RequestThrottled", ""), fault.Throttled},
		"SQS is down": {awstest.Fault(http.StatusServiceUnavailable, "ServiceUnavailable", ""),
			fault.Unavailable},
		"nobody answered": {awstest.Lost(), fault.Unavailable},
	} {
		t.Run("a send fails for good or is retried: "+name, func(t *testing.T) {
			t.Parallel()
			a := &account{owner: "acme", send: func(int) awstest.Answer { return c.answer }}
			_, err := a.open().Send(t.Context(), "orders", executor.Message{Body: "x"})
			if fault.KindOf(err) != c.kind {
				t.Errorf("got %v; want kind %q", err, c.kind)
			}
			if len(a.sends) != 1 {
				t.Errorf("it was sent %d times: it may have arrived as often", len(a.sends))
			}
		})
	}
}

func TestTenants_RetryTheLookUpOfAQueueThatWasGone(t *testing.T) {
	t.Parallel()
	a := &account{owner: "acme", send: func(n int) awstest.Answer {
		if n == 1 {
			return awstest.Fault(http.StatusBadRequest, "QueueDoesNotExist", "")
		}
		return awstest.OK(`{"MessageId":"m-2"}`)
	}}
	tenants := a.open()
	_, _ = tenants.Send(t.Context(), "orders", executor.Message{Body: "x"})
	if id, err := tenants.Send(t.Context(), "orders", executor.Message{Body: "x"}); id != "m-2" || err != nil ||
		a.asked != 2 {
		t.Errorf("got %q, %v after %d looks", id, err, a.asked)
	}
}
