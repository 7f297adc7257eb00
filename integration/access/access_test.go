package access

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/api"
	"punctual/functions/batch"
	"punctual/functions/changes"
	"punctual/functions/forecast"
	"punctual/functions/stagetest"
	"punctual/functions/stats"
	"punctual/integration/story"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/workers/system"
	"punctual/workers/worker"
)

var update = flag.Bool("update", false, "write the list anew")

// list is the golden file.
const list = "../../infra/testdata/access.txt"

// bench is the product over memory, with separate ports for each part.
type bench struct {
	*stagetest.Bench
	did     ledger
	api     *story.API
	indexed bool // there is the index of jobs
}

// ports are those of a part, with the index where there is one.
func (w *bench) ports(part string) system.Ports {
	p := w.did.ports(w.World, part)
	if w.indexed {
		p.Search = store.NewSearchTable(nil, p.Table)
	}
	return p
}

// live runs the product in virtual time while do drives it, and adds its calls to the ledger.
func live(t *testing.T, into *ledger, indexed bool, do func(t *testing.T, w *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &bench{Bench: stagetest.New(t, memory.Options{}), indexed: indexed}
		registry := worker.NewRegistry()
		worker.Register(registry, "slow", func(context.Context, worker.Job[json.RawMessage]) (struct{}, error) {
			return struct{}{}, nil
		})
		sys := system.Compose(system.Ports{Of: func(stage string) system.Ports {
			if stage == "events" || stage == "search" {
				stage = "changes" // the function that runs it
			}
			return w.ports(stage)
		}, Search: w.ports("changes").Search, Table: w.World.Table(), Blobs: w.World.Blobs()},
			system.Options{Shards: 1, NoAPI: true, Worker: worker.Options{Name: "w", Slots: 20, Pools: contract.Pools,
				Seen: true},
				Webhooks: true, Registry: registry})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- sys.Run(ctx) }()
		ahead := w.did.ports(w.World, "prewarm")
		demand := forecast.New(forecast.Deps{Store: store.New(ahead.Table, ahead.Blobs), Base: process.Base{Shards: 1}})
		go func() {
			for ctx.Err() == nil {
				_, _ = demand.Handle(ctx, nil)
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
			}
		}()
		go w.follow(ctx)
		w.api = story.Over(t, w.split())
		// A story acts between the ticks of promoter and sweeper, so that chance does not choose
		// which part acts first.
		time.Sleep(17300 * time.Millisecond)
		do(t, w)
		stop()
		<-done
		synctest.Wait()
		for _, line := range w.did.sorted() {
			part, rest, _ := strings.Cut(line, " ")
			action, resource, _ := strings.Cut(rest, " ")
			into.note(part, action, resource)
		}
	})
}

// follow has the second reader of the stream follow the jobs table until ctx ends.
func (w *bench) follow(ctx context.Context) {
	p := w.did.ports(w.World, "changes")
	base := process.Base{Shards: 1}
	reader := changes.New(changes.Deps{Base: base, Queue: p.Queues,
		Counts: stats.New(stats.Deps{Base: base, Store: store.New(p.Table, p.Blobs), UsageTags: []string{"a"}})})
	for after := ""; ctx.Err() == nil; {
		found, err := w.World.Table().Stream(ctx, after, 1000, time.Minute)
		if err != nil || len(found) == 0 {
			continue
		}
		ev := events.DynamoDBTimeWindowEvent{DynamoDBEvent: batch.StreamEventOfAll(found...)}
		if done, err := reader.Handle(ctx, ev); err == nil && len(done.BatchItemFailures) == 0 {
			after = found[len(found)-1].Seq
		}
		select { // no sleep, which would outlive the story
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// split is the API as it is deployed: one function for reads, one for writes, and one that finds jobs by the index.
func (w *bench) split() http.Handler {
	half := func(part string) http.Handler {
		p := w.ports(part)
		var index store.SearchReader
		if w.indexed && part != "api-read" {
			index = p.Search
		}
		return api.New(api.Deps{Search: index,
			RateLimit: store.RateLimit{Rate: 10_000, Burst: 100_000}, Store: store.New(p.Table, p.Blobs),
			Queues: p.Queues, Timers: p.Timers, Base: process.Base{Shards: 1, Announced: true}, Counted: true})
	}
	reads, writes, searches := half("api-read"), half("api-write"), half("api-search")
	found := []string{"/v1/jobs", "/v1/dead-letters", "/v1/dead-letters/groups"}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.indexed && r.Method == http.MethodGet && slices.Contains(found, r.URL.Path) {
			searches.ServeHTTP(rw, r)
			return
		}
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			reads.ServeHTTP(rw, r)
			return
		}
		writes.ServeHTTP(rw, r)
	})
}

func TestAccess_MatchesTheGoldenList(t *testing.T) {
	var all ledger
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { live(t, &all, false, s.run) })
	}
	t.Run("searches", func(t *testing.T) { live(t, &all, true, ofSearches) })
	if t.Failed() {
		return
	}
	lines := strings.Join(all.sorted(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(list, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != lines {
		t.Errorf("%s is not what the parts do; go test ./integration/access -update\n%s", list,
			change(string(have), lines))
	}
}

// change returns the lines that only one of the two texts has.
func change(old, now string) string {
	in := func(line, text string) bool { return strings.Contains("\n"+text, "\n"+line+"\n") }
	var b strings.Builder
	for line := range strings.Lines(old) {
		if line = strings.TrimSuffix(line, "\n"); !in(line, now) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for line := range strings.Lines(now) {
		if line = strings.TrimSuffix(line, "\n"); !in(line, old) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}
