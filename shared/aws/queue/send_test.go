package queue_test

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
)

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// unsent returns what err says was not sent, by index.
func unsent(t *testing.T, err error) map[int]error {
	t.Helper()
	var u *message.Unsent
	if !errors.As(err, &u) {
		t.Fatalf("got %v; want an error that names what was not sent", err)
	}
	return u.Failed
}

func numbered(n int) []message.Outgoing {
	out := make([]message.Outgoing, n)
	for i := range out {
		out[i] = message.Outgoing{Body: fmt.Sprintf("body %d", i)}
	}
	return out
}

//proof:of 203
func TestSend_BatchesTenMessagesOrAMegabyte(t *testing.T) {
	t.Parallel()
	sizes := func(b *bench) (n []int) {
		for _, batch := range b.batches {
			n = append(n, len(batch))
		}
		return n
	}
	b := setup(nil, nil)
	if err := b.Send(t.Context(), contract.ReportQueue, numbered(25)...); err != nil {
		t.Fatal(err)
	}
	if got := sizes(b); !slices.Equal(got, []int{10, 10, 5}) || b.batches[2][4].Body != "body 24" {
		t.Errorf("25 messages went in batches of %v", got)
	}
	b = setup(nil, nil)
	half := message.Outgoing{Body: strings.Repeat("x", 512<<10)}
	whole := message.Outgoing{Body: strings.Repeat("x", 1<<20)}
	if err := b.Send(t.Context(), contract.ReportQueue, half, half, half, whole,
		message.Outgoing{Body: "y"}); err != nil {
		t.Fatal(err)
	}
	if got := sizes(b); !slices.Equal(got, []int{2, 1, 1, 1}) {
		t.Errorf("large messages went in batches of %v; want two halves, one, a whole, one", got)
	}
	if got := b.Counts(); got.QueueCalls != 5 || got.QueueUnits != 1+16+8+16+1 {
		t.Errorf("counted %+v; want 5 calls and every 64 KB begun", got)
	}
	b = setup(nil, nil)
	if err := b.Send(t.Context(), contract.ReportQueue); err != nil || len(b.ops) != 0 {
		t.Errorf("sending none: %v after %v", err, b.ops)
	}
}

//proof:of 94 S40
func TestSend_CarriesDelayAndTenant(t *testing.T) {
	t.Parallel()
	b := setup(nil, nil)
	if err := b.Send(t.Context(), contract.ReportQueue,
		message.Outgoing{Body: "a", Delay: 2900 * time.Millisecond,
			Group: "acme"}, message.Outgoing{Body: "b"}); err != nil {
		t.Fatal(err)
	}
	want := `{"QueueUrl":"https://sqs/1/test-report","Entries":[
		{"Id":"0","MessageBody":"a","DelaySeconds":2,"MessageGroupId":"acme"},{"Id":"1","MessageBody":"b"}]}`
	if !sameJSON(b.bodies[0], want) {
		t.Errorf("the request is %s; want %s", b.bodies[0], want)
	}
}

// S22: the request succeeded, two of ten entries did not; one was SQS's fault, one ours.
//
//proof:of S22
func TestSend_ResendsOrNamesTheRestOfAHalfTakenBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taken := map[string]int{}
		b := setup(func(batch int, e entry) map[string]any {
			switch {
			case e.Body == "body 3" && batch == 1:
				return failure("InternalError", false)
			case e.Body == "body 7":
				return failure("InvalidMessageContents", true)
			}
			taken[e.Body]++
			return nil
		}, nil)
		failed := unsent(t, b.Send(t.Context(), contract.ReportQueue, numbered(10)...))
		if len(failed) != 1 || fault.KindOf(failed[7]) != fault.Invalid {
			t.Errorf("not sent: %v; want number 7, invalid", failed)
		}
		if len(taken) != 9 || taken["body 3"] != 1 || taken["body 0"] != 1 {
			t.Errorf("taken: %v; want nine, each once", taken)
		}
		if len(b.batches) != 2 || len(b.batches[1]) != 1 {
			t.Errorf("batches were %v; want ten and then the one", b.batches)
		}
	})
}

func TestSend_NamesAnEntryThatKeepsFailingAsRetryable(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]fault.Kind{"InternalError": fault.Unavailable,
		"ThrottlingException": fault.Throttled} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(func(_ int, e entry) map[string]any {
				if e.Body == "body 1" {
					return failure(code, false)
				}
				return nil
			}, nil)
			failed := unsent(t, b.Send(t.Context(), contract.ReportQueue, numbered(3)...))
			if len(failed) != 1 || fault.KindOf(failed[1]) != want || len(b.batches) != session.Tries {
				t.Errorf("%s: not sent %v after %d tries; want number 1, %s, after %d", code, failed, len(b.batches),
					want, session.Tries)
			}
		})
	}
}

func TestSend_ResendsAnEntryThatTheAnswerDoesNotMention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(func(batch int, e entry) map[string]any {
			if batch == 1 && e.Body == "body 2" {
				return map[string]any{} // neither taken nor failed
			}
			return nil
		}, nil)
		if err := b.Send(t.Context(), contract.ReportQueue, numbered(3)...); err != nil {
			t.Errorf("it was taken at the second try: %v", err)
		}
		if len(b.batches) != 2 || len(b.batches[1]) != 1 || b.batches[1][0].Body != "body 2" {
			t.Errorf("batches were %v; want three and then the one", b.batches)
		}
	})
}

func TestSend_ResendsTheBatchAfterALostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := false
		b := setup(nil, func(op string) (awstest.Answer, bool) {
			if op == "SendMessageBatch" && !lost {
				lost = true
				return awstest.Lost(), true
			}
			return awstest.Answer{}, false
		})
		if err := b.Send(t.Context(), contract.ReportQueue, numbered(3)...); err != nil || len(b.batches) != 1 {
			t.Errorf("%v, %d batches answered", err, len(b.batches))
		}
	})
}

func TestSend_StopsWhenTheQueueIsOutOfReach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
		tries  int
	}{
		"down": {awstest.Fault(http.StatusServiceUnavailable, "ServiceUnavailable", ""), fault.Unavailable,
			session.Tries},
		"not allowed": {awstest.Fault(http.StatusForbidden, "AccessDeniedException", ""), fault.Forbidden, 1},
		"gone":        {awstest.Fault(http.StatusBadRequest, "QueueDoesNotExist", ""), fault.NotFound, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(nil, func(op string) (awstest.Answer, bool) { return c.answer, op == "SendMessageBatch" })
			err := b.Send(t.Context(), contract.ReportQueue, numbered(25)...)
			failed := unsent(t, err)
			if len(failed) != 25 || fault.KindOf(failed[24]) != c.kind ||
				fault.Retryable(err) != (c.kind == fault.Unavailable) {
				t.Errorf("%s: %d not sent, the last %v; want all 25, %s", name, len(failed), failed[24], c.kind)
			}
			if len(b.ops) != 1+c.tries {
				t.Errorf("%s: %d calls; want the search and %d tries", name, len(b.ops), c.tries)
			}
		})
	}
}

func TestSend_FindsTheOneForWhichABatchIsRefusedAndSendsTheOthers(t *testing.T) {
	t.Parallel()
	sends := 0
	b := setup(nil, func(op string) (awstest.Answer, bool) {
		if op != "SendMessageBatch" {
			return awstest.Answer{}, false
		}
		sends++
		// Twelve messages, of which the second can never be sent: the first ten are refused, the
		// first goes alone, the next ten are refused, the second is refused alone.
		refused := sends == 1 || sends == 3 || sends == 4
		return awstest.Fault(http.StatusBadRequest, "AWS.SimpleQueueService.BatchRequestTooLong", ""), refused
	})
	failed := unsent(t, b.Send(t.Context(), contract.ReportQueue, numbered(12)...))
	if !slices.Equal(slices.Sorted(maps.Keys(failed)), []int{1}) || fault.KindOf(failed[1]) != fault.TooLarge {
		t.Errorf("not sent: %v; want the second, too large", failed)
	}
	if sends != 5 {
		t.Errorf("%d sends, want five", sends)
	}
}

func TestSend_NamesWhatSQSRefusesAndSendsTheRest(t *testing.T) {
	t.Parallel()
	b := setup(nil, nil)
	bad := []message.Outgoing{
		{Body: ""}, {Body: "\x00"}, {Body: "\xff"}, {Body: "\ufffe"},
		{Body: "late", Delay: contract.MaxDelay + time.Second}, {Body: "early", Delay: -time.Second},
		{Body: "group", Group: strings.Repeat("x", 129)},
		{Body: strings.Repeat("x", 1<<20+1)},
	}
	failed := unsent(t, b.Send(t.Context(), contract.ReportQueue, append(bad, message.Outgoing{Body: "ü😀\t\r\n"})...))
	for i := range bad {
		want := fault.Invalid
		if len(bad[i].Body) > 1<<20 {
			want = fault.TooLarge
		}
		if fault.KindOf(failed[i]) != want {
			t.Errorf("message %d: %v; want %s", i, failed[i], want)
		}
	}
	if len(failed) != len(bad) || len(b.batches) != 1 || len(b.batches[0]) != 1 {
		t.Errorf("%d not sent, batches %v; want the last one sent", len(failed), b.batches)
	}
}

func TestDelete_BatchesTenAndRetriesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		receipts := make([]string, 12)
		for n := range receipts {
			receipts[n] = fmt.Sprint("r-", n)
		}
		b := setup(func(batch int, e entry) map[string]any {
			switch {
			case e.Receipt == "r-2" && batch < 3:
				return failure("InternalError", false)
			case e.Receipt == "r-5": // deleted before
				return failure("ReceiptHandleIsInvalid", true)
			}
			return nil
		}, nil)
		if err := b.Delete(t.Context(), contract.ReportQueue, receipts...); err != nil {
			t.Errorf("deleting: %v", err)
		}
		var got []int
		for _, batch := range b.batches {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, []int{10, 1, 1, 2}) {
			t.Errorf("batches of %v; want ten, the one twice more, and two", got)
		}
		if err := b.Delete(t.Context(), contract.ReportQueue); err != nil {
			t.Errorf("deleting none: %v", err)
		}
	})
}

func TestDelete_ReportsWhatKeepsFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(func(int, entry) map[string]any { return failure("InternalError", false) }, nil)
		if err := b.Delete(t.Context(), contract.ReportQueue, "r"); !fault.Retryable(err) ||
			len(b.batches) != session.Tries {
			t.Errorf("%v after %d tries; want a retryable error after %d", err, len(b.batches), session.Tries)
		}
		b = setup(func(int, entry) map[string]any { return failure("InvalidId", true) }, nil)
		if err := b.Delete(t.Context(), contract.ReportQueue, "r"); fault.KindOf(err) != fault.Invalid ||
			len(b.batches) != 1 {
			t.Errorf("%v after %d tries; want invalid at once", err, len(b.batches))
		}
	})
}
