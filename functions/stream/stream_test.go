package stream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/stagetest"
	"punctual/functions/stream"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

type bench struct {
	*stagetest.Bench
	stage *stream.Stage
	seen  string // of the table's stream
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{Bench: s, stage: stream.New(stream.Deps{
			Queue: s.World.Queues(), Base: process.Base{Meter: s.Meter},
		})})
	})
}

// write writes to the table and gives the stage the records of its stream.
func (b *bench) write(writes ...item.Write) events.DynamoDBEventResponse {
	b.Helper()
	for _, w := range writes {
		if _, err := b.World.Table().Write(b.Context(), w); err != nil {
			b.Fatal(err)
		}
	}
	changes, err := b.World.Table().Stream(b.Context(), b.seen, 1000, 0)
	b.Must(err)
	b.seen = changes[len(changes)-1].Seq
	return b.handle(batch.StreamEventOf(changes...))
}

func (b *bench) handle(ev events.DynamoDBEvent) events.DynamoDBEventResponse {
	b.Helper()
	resp, err := b.stage.Handle(b.Context(), ev)
	b.Must(err)
	return resp
}

func (b *bench) requireAllDone(resp events.DynamoDBEventResponse) {
	b.Helper()
	if len(resp.BatchItemFailures) != 0 {
		b.Fatalf("redelivered: %v", resp.BatchItemFailures)
	}
}

// received takes the messages that the queue shows after that time.
func (b *bench) received(queue string, after time.Duration) []message.Delivery {
	b.Helper()
	time.Sleep(after)
	return b.Received(queue)
}

func due(n int, in time.Duration, change ...func(*job.Row)) job.Row {
	return jobtest.Row(n, time.Now().Add(in), time.Now(), change...)
}

//proof:of 84
func TestStream_FiresChangedJobs(t *testing.T) {
	t.Parallel()
	//proof:of 7
	bubble(t, "sends a job that is due soon with the delay that is left", func(b *bench) {
		r := due(1, 10*time.Second)
		b.requireAllDone(b.write(job.Accept(r)))
		if got := b.received(stagetest.FiringQueue, 7*time.Second); len(got) != 0 {
			b.Fatal("it came early")
		}
		got := b.received(stagetest.FiringQueue, time.Second)
		if len(got) != 1 || got[0].Group != jobtest.Tenant {
			b.Fatalf("received %+v", got)
		}
		if f, err := message.Decode[message.Firing](got[0].Body); err != nil || f != r.Firing().Message() {
			b.Errorf("received %+v, %v", f, err)
		}
	})
	bubble(t, "asks once for the slice of jobs that are due later, even a little beyond the horizon", func(b *bench) {
		minute := time.Now().Truncate(time.Minute)
		rows := []job.Row{
			due(1, 15*time.Minute), due(5, 15*time.Minute+20*time.Second), due(2, contract.Horizon+contract.NearMargin),
		}
		b.requireAllDone(b.write(job.Accept(rows[0]), job.Accept(rows[1])))
		b.requireAllDone(b.write(job.Accept(rows[2])))
		b.RequireAsked(horizon.Slice{Minute: minute.Add(15 * time.Minute), Shard: 1},
			horizon.Slice{Minute: minute.Add(32 * time.Minute), Shard: 2})
		if got := b.received(stagetest.FiringQueue, time.Hour); len(got) != 0 {
			b.Errorf("it sent %d firings as well", len(got))
		}
	})
	bubble(t, "sends a job that its row marks for the direct lane, even if the clock differs", func(b *bench) {
		r := due(1, contract.DirectLane)
		ev := batch.StreamEventOf(item.Change{Seq: "1", New: r.Item()})
		slow := stream.New(stream.Deps{
			Queue: b.World.Queues(), Base: process.Base{Clock: clock.Skewed{Offset: -3 * time.Second}},
		})
		if resp, err := slow.Handle(b.Context(), ev); err != nil || len(resp.BatchItemFailures) != 0 {
			b.Fatal(resp, err)
		}
		if got := b.received(stagetest.FiringQueue, contract.DirectLane+3*time.Second); len(got) != 1 {
			b.Errorf("received %d", len(got))
		}
	})
	bubble(t, "sends a job that it sees too late for its slice", func(b *bench) {
		r := due(1, 20*time.Minute)
		ev := batch.StreamEventOf(item.Change{Seq: "1", New: r.Item()})
		time.Sleep(6*time.Minute + time.Second)
		b.requireAllDone(b.handle(ev))
		if got := b.received(stagetest.FiringQueue, 14*time.Minute); len(got) != 1 {
			b.Errorf("received %d", len(got))
		}
	})
	bubble(t, "ignores a job that its writer fires and one that is far ahead", func(b *bench) {
		b.requireAllDone(b.write(job.Accept(due(1, time.Second)), job.Accept(due(2, time.Hour))))
		if got := b.received(stagetest.FiringQueue, time.Minute); len(got)+
			len(b.received(contract.DispatchQueue, 0)) != 0 {
			b.Error("it got them on their way")
		}
	})
	bubble(t, "sends a job that has become due without a delay", func(b *bench) {
		r := due(1, 10*time.Second)
		ev := batch.StreamEventOf(item.Change{Seq: "1", New: r.Item()})
		time.Sleep(time.Minute)
		b.requireAllDone(b.handle(ev))
		if got := b.received(stagetest.FiringQueue, 0); len(got) != 1 {
			b.Errorf("received %d", len(got))
		}
	})
	bubble(t, "sends a job once more only if version, attempt or due time changed", func(b *bench) {
		r := due(1, 5*time.Minute)
		b.write(job.Accept(r))
		b.requireAllDone(b.write(item.Write{Ref: r.Ref(), Name: "test", Set: map[string]any{"failures": int64(1)}}))
		if got := b.received(stagetest.FiringQueue, 5*time.Minute); len(got) != 1 {
			b.Errorf("%d firings of one attempt", len(got))
		}
	})
	bubble(t, "asks for the new slice of an edited job", func(b *bench) {
		r := due(1, 20*time.Minute)
		b.write(job.Accept(r))
		at := r.DueAt.Add(5 * time.Minute)
		after, w, _ := job.Reschedule(r, job.Edit{DueAt: &at}, time.Now())
		b.requireAllDone(b.write(w))
		b.RequireAsked(horizon.SliceOf(r.DueAt, 1), horizon.SliceOf(after.DueAt, 1))
	})
	bubble(t, "ignores a job with a stop", func(b *bench) {
		r := due(1, 5*time.Minute)
		_, w := job.RequestStop(r, job.StopCancel, job.Reason{}, time.Now())
		b.write(job.Accept(r))
		b.requireAllDone(b.write(w))
		if got := b.received(stagetest.FiringQueue, 5*time.Minute); len(got) != 1 {
			b.Errorf("%d firings", len(got))
		}
	})
	//proof:of S32
	bubble(t, "never writes the table", func(b *bench) {
		b.write(job.Accept(due(1, time.Minute)), job.Accept(due(2, 20*time.Minute)))
		changes, err := b.World.Table().Stream(b.Context(), b.seen, 1000, time.Hour)
		if err != nil || len(changes) != 0 {
			b.Errorf("%d records followed, %v", len(changes), err)
		}
	})
	//proof:of S18
	bubble(t, "asks once more for a batch that is redelivered", func(b *bench) {
		r := due(1, 20*time.Minute)
		ev := batch.StreamEventOf(item.Change{Seq: "1", New: r.Item()})
		b.FaultFirst(1, stagetest.Every(memory.QueueSend), memory.Fault{Lost: true})
		if resp := b.handle(ev); len(resp.BatchItemFailures) != 1 || resp.BatchItemFailures[0].ItemIdentifier != "1" {
			b.Fatalf("a lost answer gave %+v", resp)
		}
		b.requireAllDone(b.handle(ev))
		if got := b.received(contract.DispatchQueue, 0); len(got) != 2 || got[0].Body != got[1].Body {
			b.Errorf("asked by %v", got)
		}
	})
	//proof:of S22
	bubble(t, "names only the records that were throttled", func(b *bench) {
		b.FailEntries(map[int]fault.Kind{1: fault.Throttled})
		var changes []item.Change
		for n, seq := range []string{"a", "b", "c"} {
			changes = append(changes,
				item.Change{Seq: seq, New: due(n, time.Minute+time.Duration(n)*time.Second).Item()})
		}
		if resp := b.handle(batch.StreamEventOf(changes...)); len(resp.BatchItemFailures) != 1 ||
			resp.BatchItemFailures[0].ItemIdentifier != "b" {
			b.Errorf("redelivered: %+v", resp)
		}
	})
}

func TestStream_IgnoresWhatTheFilterDrops(t *testing.T) {
	t.Parallel()
	bubble(t, "ignores an item that is not near, readable or not", func(b *bench) {
		ev := batch.StreamEventOf(item.Change{Seq: "1", New: due(1, time.Minute).Item()},
			item.Change{Seq: "2", New: due(2, time.Minute).Item()})
		for _, rec := range ev.Records {
			delete(rec.Change.NewImage, contract.AttrNear)
		}
		ev.Records[1].Change.NewImage["schema_v"] = events.NewNumberAttribute("99")
		b.requireAllDone(b.handle(ev))
		if got := len(b.received(stagetest.FiringQueue, time.Minute)) +
			len(b.received(contract.FiringDead, 0)); got != 0 {
			b.Errorf("%d messages were sent", got)
		}
	})
}

//proof:of S31
func TestStream_SetsAPoisonRecordAside(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]func(events.DynamoDBStreamRecord){
		"an unknown version": func(r events.DynamoDBStreamRecord) {
			r.NewImage["schema_v"] = events.NewNumberAttribute("99")
		},
		"a list instead of a string": func(r events.DynamoDBStreamRecord) {
			r.NewImage["status"] = events.NewListAttribute(
				[]events.DynamoDBAttributeValue{events.NewStringAttribute("SCHEDULED")})
		},
		"a due time that is no number": func(r events.DynamoDBStreamRecord) {
			r.NewImage["due_at"] = events.NewStringAttribute("tomorrow")
		},
		"a queue that does not exist": func(r events.DynamoDBStreamRecord) {
			r.NewImage["pool"] = events.NewStringAttribute("gone")
			r.NewImage["due_at"] = events.NewNumberAttribute("0")
		},
	} {
		bubble(t, name, func(b *bench) {
			var changes []item.Change
			for n := range 100 {
				r := due(n, 10*time.Minute, func(r *job.Row) { r.Payload = `{"secret":1}` })
				changes = append(changes, item.Change{Seq: string(r.ID), New: r.Item()})
			}
			ev := batch.StreamEventOf(changes...)
			poison(ev.Records[50].Change)
			b.requireAllDone(b.handle(ev))
			aside := b.received(contract.FiringDead, 0)
			if n := len(b.received(stagetest.FiringQueue, 10*time.Minute)); n != 99 {
				b.Errorf("%d were sent", n)
			}
			if len(aside) != 1 {
				b.Fatalf("%d were set aside", len(aside))
			}
			var body struct {
				Keys   map[string]string `json:"keys"`
				Reason string            `json:"reason"`
			}
			if err := json.Unmarshal([]byte(aside[0].Body), &body); err != nil ||
				body.Keys["job_id"] != string(jobtest.Key(50).ID) || body.Reason == "" {
				b.Errorf("set aside as %s", aside[0].Body)
			}
			if strings.Contains(aside[0].Body, "secret") {
				b.Error("the payload went with it")
			}
			if n := b.Meter.Total(telemetry.Quarantined); n != 1 {
				b.Errorf("counted %v", n)
			}
		})
	}
}

//proof:of F09
func TestStream_AsksToDeleteTheContentsOfAnExpiredRow(t *testing.T) {
	t.Parallel()
	over := func(r *job.Row) {
		r.Status, r.WakeAt, r.ExpiresAt = job.Succeeded, time.Time{}, time.Now().Add(time.Minute)
	}
	bubble(t, "asks once the row has expired", func(b *bench) {
		plain, tagged := due(1, 0, over), due(2, 0, over, func(r *job.Row) { r.Tagged = true })
		b.requireAllDone(b.write(job.Accept(plain), job.Accept(tagged), tagged.PutContent(job.TagsContent, "{}")))
		time.Sleep(2 * time.Minute)
		if n := b.World.Table().Expire(); n != 3 {
			b.Fatalf("%d items expired", n)
		}
		after := due(3, time.Hour)
		b.requireAllDone(b.write(job.Accept(after)))
		got := b.received(contract.DispatchQueue, 0)
		ask, _ := job.Forgotten(tagged)
		if len(got) != 1 || got[0].Body != message.Encode(ask) || got[0].Group != jobtest.Tenant {
			b.Errorf("asked for %v", got)
		}
	})
	bubble(t, "asks once more after a failure", func(b *bench) {
		r := due(2, 0, over, func(r *job.Row) { r.Tagged = true })
		b.requireAllDone(b.write(job.Accept(r)))
		b.Fault(stagetest.Every(memory.QueueSend), memory.Fault{Fail: fault.Throttled})
		if resp := b.write(item.Write{Ref: r.Ref(), Name: "expire", Delete: true}); len(resp.BatchItemFailures) != 1 {
			b.Errorf("redelivered: %v", resp.BatchItemFailures)
		}
	})
}
