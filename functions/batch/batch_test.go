package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/text"
)

func messages(bodies ...string) events.SQSEvent {
	var ev events.SQSEvent
	for i, b := range bodies {
		ev.Records = append(ev.Records, events.SQSMessage{MessageId: string(rune('a' + i)), Body: b})
	}
	return ev
}

func failed(resp events.SQSEventResponse) string {
	ids := ""
	for _, f := range resp.BatchItemFailures {
		ids += f.ItemIdentifier
	}
	return ids
}

//proof:of S21
func TestSQS_RedeliversOnlyTheBadMessages(t *testing.T) {
	t.Parallel()
	meter, logged := new(telemetry.Meter), new(bytes.Buffer)
	r := Runner{Log: telemetry.Logger(logged, "test"), Meter: meter}
	var handled atomic.Int64
	resp := r.SQS(t.Context(), messages("1", "2", "3", "4", "5", "6", "secret-body", "fail", "panic", "10"),
		func(_ context.Context, d message.Delivery) error {
			switch d.Body {
			case "secret-body":
				return fault.New(fault.Undecodable, nil, "reading a report")
			case "fail":
				return errors.New("the table is gone")
			case "panic":
				panic("nil map")
			}
			handled.Add(1)
			return nil
		})
	if failed(resp) != "ghi" || handled.Load() != 7 {
		t.Errorf("%q are redelivered and %d were handled", failed(resp), handled.Load())
	}
	if meter.Total(telemetry.Quarantined) != 1 || meter.Total(telemetry.Faults) != 3 ||
		meter.Total(telemetry.RecordsFailed) != 3 {
		t.Errorf("%v set aside of %v faults, of %v records", meter.Total(telemetry.Quarantined),
			meter.Total(telemetry.Faults), meter.Total(telemetry.RecordsFailed))
	}
	if s := logged.String(); strings.Contains(s, "secret-body") || strings.Count(s, "\n") != 3 ||
		!strings.Contains(s, "batch_test.go") {
		t.Errorf("the log should have three lines, the panic's line and no body:\n%s", s)
	}
}

// hidden records when each message becomes visible.
type hidden struct {
	calls []string
	fails bool
}

func (h *hidden) SetVisibility(_ context.Context, queue, receipt string, d time.Duration) error {
	h.calls = append(h.calls, queue+" "+receipt+" "+d.String())
	if h.fails {
		return errors.New("the queue is gone")
	}
	return nil
}

func TestSQS_RedeliversAfterGrowingWaits(t *testing.T) {
	t.Parallel()
	batchOf := func(receives int, bodies ...string) events.SQSEvent {
		var deliveries []message.Delivery
		for _, body := range bodies {
			deliveries = append(deliveries, message.Delivery{ID: body, Receipt: body, Body: body, Receives: receives})
		}
		return SQSEventOf(deliveries...)
	}
	do := func(_ context.Context, d message.Delivery) error {
		switch d.Body {
		case "fails", "too":
			return errors.New("the table is busy")
		case "unreadable":
			return fault.New(fault.Undecodable, nil, "reading a report")
		case "redeliver":
			return ErrRedeliver
		}
		return nil
	}
	for _, c := range []struct {
		receives int
		want     string
	}{{1, "2s"}, {2, "4s"}, {3, "8s"}, {7, "2m8s"}, {8, "3m0s"}, {1000, "3m0s"}} {
		h := new(hidden)
		r := Runner{Log: telemetry.Silent(), Queue: "report", Queues: h}
		if resp := r.SQS(t.Context(), batchOf(c.receives, "good", "fails", "unreadable", "redeliver"),
			do); len(resp.BatchItemFailures) != 3 {
			t.Errorf("%d of 3 are redelivered", len(resp.BatchItemFailures))
		}
		if want := []string{"report fails " + c.want}; !slices.Equal(h.calls, want) {
			t.Errorf("received %d times: %v, want %v", c.receives, h.calls, want)
		}
	}
	h := &hidden{fails: true}
	r := Runner{Log: telemetry.Silent(), Queue: "report", Queues: h}
	if resp := r.SQS(t.Context(), batchOf(1, "fails", "too"), do); len(resp.BatchItemFailures) != 2 ||
		len(h.calls) != 1 {
		t.Errorf("with a queue that is gone %d of 2 are redelivered and it is asked %d times, want once",
			len(resp.BatchItemFailures), len(h.calls))
	}
}

func TestSQS_AnswersWithAListAndNotNull(t *testing.T) {
	t.Parallel()
	r := Runner{Log: telemetry.Silent()}
	sqs, err := json.Marshal(r.SQS(t.Context(), messages("1"),
		func(context.Context, message.Delivery) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := json.Marshal(r.Stream(t.Context(), events.DynamoDBEvent{},
		func(context.Context, []item.Change) []error { return nil }, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{string(sqs), string(stream)} {
		if answer != `{"batchItemFailures":[]}` {
			t.Errorf("answered %s", answer)
		}
	}
}

func TestSQS_ReportsAnUnreadableMessageOnce(t *testing.T) {
	t.Parallel()
	meter := new(telemetry.Meter)
	r := Runner{Log: telemetry.Silent(), Meter: meter}
	for n := range 3 {
		ev := messages("not json")
		ev.Records[0].Attributes = map[string]string{"ApproximateReceiveCount": string(rune('1' + n))}
		resp := r.SQS(t.Context(), ev,
			func(context.Context, message.Delivery) error { return fault.New(fault.Undecodable, nil, "reading") })
		if failed(resp) != "a" {
			t.Fatalf("receive %d: it was not left to the redrive policy", n+1)
		}
	}
	if meter.Total(telemetry.Quarantined) != 1 {
		t.Errorf("counted %v times", meter.Total(telemetry.Quarantined))
	}
}

func TestSQS_RedeliversWhatItHasNoTimeFor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	resp := Runner{Log: telemetry.Silent()}.SQS(ctx, messages("1", "2"),
		func(context.Context, message.Delivery) error { return nil })
	if failed(resp) != "ab" {
		t.Errorf("%q are redelivered", failed(resp))
	}
}

func TestDelivery_KeepsSourceAndTimes(t *testing.T) {
	t.Parallel()
	d := DeliveryOf(events.SQSMessage{MessageId: "m", ReceiptHandle: "r", Body: "b", Attributes: map[string]string{
		"SentTimestamp": "1800000000123", "ApproximateReceiveCount": "2", "DeadLetterQueueSourceArn": "arn:q",
		"MessageGroupId": "acme",
	}})
	want := message.Delivery{ID: "m", Receipt: "r", Body: "b", Group: "acme", Receives: 2,
		SentAt: time.UnixMilli(1800000000123).UTC(), Source: "arn:q"}
	if d != want {
		t.Errorf("read %+v", d)
	}
}

func record(seq string, image map[string]events.DynamoDBAttributeValue) events.DynamoDBEventRecord {
	return events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: seq, NewImage: image,
		Keys: map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute("acme#1"),
			"job_id": events.NewStringAttribute(seq)},
	}}
}

func TestStream_SetsAnUnreadableRecordAsideAndRedeliversAThrottledOne(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := Runner{Log: slog.New(slog.NewTextHandler(&log, nil)), Meter: new(telemetry.Meter)}
	var ev events.DynamoDBEvent
	for _, seq := range []string{"1", "2", "3", "4"} {
		ev.Records = append(ev.Records, record(seq, nil))
	}
	var asides []Aside
	resp := r.Stream(t.Context(), ev, func(context.Context, []item.Change) []error {
		return []error{nil, fault.New(fault.Undecodable, nil, "schema_v is not 1"),
			fault.New(fault.Throttled, nil, "arming"), &fault.Panicked{Value: "x"}}
	}, func(_ context.Context, a Aside) error { asides = append(asides, a); return nil })
	if len(resp.BatchItemFailures) != 1 || resp.BatchItemFailures[0].ItemIdentifier != "3" {
		t.Errorf("redelivered: %v", resp.BatchItemFailures)
	}
	if len(asides) != 2 || asides[0].Keys["job_id"] != "2" || asides[1].Seq != "4" ||
		!json.Valid([]byte(asides[0].Body())) {
		t.Errorf("set aside: %+v", asides)
	}
}

func TestStream_RedeliversARecordThatCannotBeSetAside(t *testing.T) {
	t.Parallel()
	r := Runner{Log: telemetry.Silent()}
	resp := r.Stream(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record("1", nil)}},
		func(context.Context, []item.Change) []error {
			return []error{fault.New(fault.Undecodable, nil, "reading")}
		},
		func(context.Context, Aside) error { return fault.New(fault.Unavailable, nil, "sending") })
	if len(resp.BatchItemFailures) != 1 {
		t.Error("it is lost")
	}
}

func TestChange_HoldsStringsAndWholeNumbersOnly(t *testing.T) {
	t.Parallel()
	c := ChangeOf(record("7", map[string]events.DynamoDBAttributeValue{
		"s": events.NewStringAttribute("x"), "n": events.NewNumberAttribute("42"),
		"f": events.NewNumberAttribute("1.5"), "l": events.NewListAttribute(nil), "b": events.NewBooleanAttribute(true),
		"null": events.NewNullAttribute(),
	}))
	if c.Seq != "7" || c.Old != nil || len(c.New) != 2 || c.New.Str("s") != "x" || c.New.Int("n") != 42 {
		t.Errorf("read %+v", c)
	}
}

func TestRunner_RunsNoMoreRecordsThanTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := Runner{Log: telemetry.Silent(), Limit: 3}
		r.SQS(t.Context(), messages(slices.Repeat([]string{"x"}, 20)...),
			func(context.Context, message.Delivery) error {
				time.Sleep(time.Second)
				return nil
			})
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("20 records of a second each, 3 at once, took %s", took)
		}
	})
}

func TestStream_PassesARecordThatCanNeverBeSetAside(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Invalid, fault.TooLarge, fault.Forbidden} {
		var log bytes.Buffer
		meter := new(telemetry.Meter)
		r := Runner{Log: slog.New(slog.NewTextHandler(&log, nil)), Meter: meter}
		resp := r.Stream(t.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{record("1", nil)}},
			func(context.Context, []item.Change) []error {
				return []error{fault.New(fault.Undecodable, nil, "reading")}
			},
			func(context.Context, Aside) error { return fault.New(kind, nil, "sending") })
		if len(resp.BatchItemFailures) != 0 {
			t.Errorf("refused as %s it is redelivered, and blocks its shard", kind)
		}
		if meter.Total(telemetry.Quarantined) != 1 || !strings.Contains(log.String(), "acme#1") ||
			!strings.Contains(log.String(), string(kind)) {
			t.Errorf("refused as %s it is counted %v times and logged as %s", kind, meter.Total(telemetry.Quarantined),
				log.String())
		}
	}
}

func TestAside_IsSendableWithAnyKeys(t *testing.T) {
	t.Parallel()
	body := Aside{Seq: "1", Keys: map[string]string{"pk": "a\x00\uffff#1", "\ufffe": "\xff"},
		Reason: "reading \uffff"}.Body()
	if !text.Allowed(body) {
		t.Errorf("no queue takes %q", body)
	}
}

//proof:of F62
func TestSQS_AnswersForTheOthersWhenARecordDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		meter := new(telemetry.Meter)
		r := Runner{Log: telemetry.Silent(), Meter: meter, Limit: 4}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var handled atomic.Int64
		began := time.Now()
		resp := r.SQS(ctx, messages("1", "never", "heeds", "4", "5", "6"),
			func(ctx context.Context, d message.Delivery) error {
				switch d.Body {
				case "never":
					<-end
				case "heeds":
					<-ctx.Done()
					return ctx.Err()
				}
				handled.Add(1)
				return nil
			})
		if failed(resp) != "bc" || handled.Load() != 4 {
			t.Errorf("%q are redelivered and %d were handled", failed(resp), handled.Load())
		}
		if ctx.Err() != nil || time.Since(began) > 19*time.Second {
			t.Errorf("the answer came after %s", time.Since(began))
		}
		if n := meter.Total(telemetry.Overrun); n != 1 {
			t.Errorf("%v records are counted as not ended", n)
		}
	})
}
