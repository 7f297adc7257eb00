package memory_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// jobRow returns an item about as large as a job's row.
func jobRow(pk, id string, slice string) item.Item {
	return item.Item{
		"pk": pk, "job_id": id, "schema_v": int64(1), "status": "SCHEDULED", "task": "send-invoice",
		"version": int64(1), "attempt": int64(1),
		"failures": int64(0), "pool": "short", "priority": "normal", "due_at": int64(1_900_000_000_000),
		"created_at": int64(1_900_000_000_000),
		"shard":      int64(7), contract.AttrWakeSlice: slice, contract.AttrWakeAt: int64(1_900_000_000_000),
		contract.AttrGroup: "acme", contract.AttrGroupSort: id,
		"payload": `{"invoice":"2027-000123","amount":1999}`, "timeout_ms": int64(30000), "retry": `{"max":3}`,
		"near": "1",
	}
}

// BenchmarkJob makes the calls of one job: eight of the table and four of queues.
func BenchmarkJob(b *testing.B) {
	w := memory.New(memory.Options{})
	defer w.Close()
	tb, qs := w.Table(), w.Queues()
	var ids atomic.Int64
	firing, report := contract.FiringQueue("short", "normal"), contract.ReportQueue
	body := message.Encode(message.Firing{V: 1, Tenant: "acme", JobID: "01J0000000000000000000000", Version: 1,
		Attempt: 1})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		ctx := b.Context()
		must := func(err error) {
			if err != nil {
				b.Error(err)
			}
		}
		for p.Next() {
			n := ids.Add(1)
			id := fmt.Sprintf("01J%022d", n)
			pk := fmt.Sprintf("acme#%d", n%32)
			row := item.Ref{Table: contract.Jobs, PK: pk, SK: id}
			claim := item.Ref{Table: contract.Claims, PK: "acme#" + id}
			do := func(w item.Write) {
				_, err := tb.Write(ctx, w)
				must(err)
			}
			do(item.Write{Ref: row, Put: jobRow(pk, id, fmt.Sprintf("2027-03-28T00:05#%d", n%64)),
				When: []item.All{{{Attr: "job_id", Op: item.Missing}}}})
			must(qs.Send(ctx, firing, message.Outgoing{Body: body, Group: "acme"}))
			got, err := qs.Receive(ctx, firing, 1, 0, 0)
			must(err)
			do(item.Write{Ref: claim, Set: map[string]any{"attempt": int64(1), "lease": int64(5), "worker": "w",
				"nonce": id}, Add: map[string]int64{"token": 1}, When: []item.All{{{Attr: "pk", Op: item.Missing}}}})
			_, err = tb.Get(ctx, row)
			must(err)
			_, err = tb.Get(ctx, claim)
			must(err)
			do(item.Write{Ref: claim, Set: map[string]any{"outcome": "ok"},
				When: []item.All{{{Attr: "attempt", Op: item.Eq, Value: int64(1)}}}})
			must(qs.Send(ctx, report, message.Outgoing{Body: body}))
			for _, d := range got {
				must(qs.Delete(ctx, firing, d.Receipt))
			}
			reports, err := qs.Receive(ctx, report, 1, 0, 0)
			must(err)
			_, err = tb.Get(ctx, row)
			must(err)
			do(item.Write{Ref: row, Set: map[string]any{"status": "SUCCEEDED", contract.AttrWakeSlice: nil,
				contract.AttrWakeAt: nil, "near": nil}, When: []item.All{{{Attr: "status", Op: item.In,
				Value: []string{"SCHEDULED", "RUNNING"}}}}})
			for _, d := range reports {
				must(qs.Delete(ctx, report, d.Receipt))
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkHeld measures the memory of a message in flight and of a finished job's items.
func BenchmarkHeld(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 100_000
	for b.Loop() {
		w := memory.New(memory.Options{})
		before := heap()
		body := message.Encode(message.Firing{V: 1, Tenant: "acme", JobID: "01J0000000000000000000000", Version: 1,
			Attempt: 1})
		for range n {
			if err := w.Queues().Send(b.Context(), contract.FiringQueue("short", "normal"),
				message.Outgoing{Body: string([]byte(body))}); err != nil {
				b.Fatal(err)
			}
		}
		held := heap()
		b.ReportMetric(float64(held-before)/n, "B/message")
		for i := range n {
			pk, id := fmt.Sprintf("acme#%d", i%32), fmt.Sprintf("01J%022d", i)
			if _, err := w.Table().Write(b.Context(), item.Write{Ref: item.Ref{Table: contract.Jobs, PK: pk, SK: id},
				Put: jobRow(pk, id, fmt.Sprintf("2027-03-28T00:05#%d", i%64))}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-held)/n, "B/row")
		w.Close()
	}
}
