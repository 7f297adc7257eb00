package access

import (
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/integration/story"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

type object = story.Object

// payload returns a payload of about so many bytes.
func payload(bytes int) object { return object{"text": strings.Repeat("x ", bytes/2)} }

var sizes = []int{10, 2_000, 300_000} // in the row, in an item, in the bucket

// stories make every part do everything that it may do. Each begins in an empty world.
var stories = []struct {
	name string
	run  func(t *testing.T, w *bench)
}{
	{"jobs of all lanes, sizes, pools and priorities, and every way to look at them", func(t *testing.T, w *bench) {
		a := w.api
		var ids []string
		for _, delay := range []string{"0s", "30s", "20m", "50m"} {
			for _, size := range sizes {
				ids = append(ids, a.Post(object{"task": "echo", "delay": delay, "payload": payload(size),
					"tags": object{"team": "a"}}))
			}
		}
		for _, pool := range contract.Pools {
			for _, priority := range contract.Priorities {
				for _, delay := range []string{"0s", "30s", "20m", "50m"} {
					a.Post(object{"task": "echo", "pool": pool, "priority": priority, "delay": delay})
				}
			}
		}
		a.Call("POST", "/jobs", object{"task": "echo"}, "Idempotency-Key", "k")
		a.Call("POST", "/jobs", object{"task": "echo"}, "Idempotency-Key", "k")
		a.Call("POST", "/jobs",
			object{"task": "echo", "payload": object{"token": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"},
				"allow_literals": []string{"/payload/token"}})
		time.Sleep(time.Hour)
		for _, id := range ids {
			a.WantStatus(id, "SUCCEEDED")
			a.Call("GET", "/jobs/"+id+"?wait=1s", nil)
			a.Attempts(id)
		}
		for _, path := range []string{"/jobs", "/jobs?status=SUCCEEDED", "/jobs?status=DEAD", "/jobs?task=echo",
			"/dead-letters", "/dead-letters?task=echo", "/stats",
			"/pauses", "/tasks", "/tasks/echo", "/ready", "/health",
			"/whoami", "/openapi.json"} {
			a.Call("GET", path, nil)
		}
		for _, id := range ids {
			a.Call("DELETE", "/jobs/"+id, nil)
		}
	}},
	{"a crowded slice", func(t *testing.T, w *bench) {
		jobs := make([]object, contract.MaxBatchJobs)
		for i := range jobs {
			jobs[i] = object{"task": "echo", "delay": "45m"}
		}
		for range 3 {
			w.api.Want(200, "POST", "/jobs/batch", object{"jobs": jobs})
		}
		time.Sleep(time.Hour)
	}},
	{"more jobs than a list of running ones looks through", func(t *testing.T, w *bench) {
		jobs := make([]object, contract.MaxBatchJobs)
		for i := range jobs {
			jobs[i] = object{"task": "echo", "delay": "30d"}
		}
		for range 21 {
			w.api.Want(200, "POST", "/jobs/batch", object{"jobs": jobs})
		}
		w.api.Call("GET", "/jobs?status=RUNNING", nil)
	}},
	{"jobs that are changed, run early and cancelled", func(t *testing.T, w *bench) {
		a := w.api
		for _, size := range sizes {
			id := a.Post(object{"task": "echo", "delay": "40m"})
			time.Sleep(time.Second)
			a.Call("PATCH", "/jobs/"+id, object{"payload": payload(size)})
			a.Call("PATCH", "/jobs/"+id, object{"delay": "20m"})
			a.Call("PATCH", "/jobs/"+id, object{"delay": "5m"})
			a.Call("PATCH", "/jobs/"+id, object{"priority": "high"})
			a.Call("POST", "/jobs/"+id+"/run-now", nil)
		}
		for _, delay := range []string{"1m", "20m", "50m"} {
			id := a.Post(object{"task": "echo", "delay": delay})
			time.Sleep(time.Second)
			a.Call("POST", "/jobs/"+id+"/cancel", nil)
		}
		id := a.Post(object{"task": "echo", "payload": object{"sleep": "5m"}})
		time.Sleep(time.Minute)
		a.Call("GET", "/jobs/"+id, nil)
		a.Call("POST", "/jobs/"+id+"/cancel", nil)
		time.Sleep(10 * time.Minute)
	}},
	{"failures, dead letters, and every redrive", func(t *testing.T, w *bench) {
		a := w.api
		a.Post(object{"task": "echo", "payload": object{"fail": 2}})
		dead := func() string {
			size := len(sizes)
			id := a.Post(object{"task": "echo", "payload": object{"fail": 99,
				"text": strings.Repeat("x", sizes[size-1])}, "tags": object{"a": "b"},
				"retry": object{"max_attempts": 8, "initial_delay": "1s"}})
			return id
		}
		ids := []string{dead(), dead(), dead(), dead()}
		time.Sleep(20 * time.Minute)
		for _, id := range ids {
			a.WantStatus(id, "DEAD")
		}
		a.Call("POST", "/jobs/"+ids[0]+"/redrive", nil)
		a.Call("POST", "/dead-letters/redrive", object{"job_ids": []string{ids[1]}})
		a.Call("POST", "/dead-letters/redrive", object{"filter": object{"task": "echo"}, "dry_run": true})
		if _, err := w.World.Queues().StartMoveTask(t.Context(), contract.DeadLetters, ""); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Minute)
		a.Call("POST", "/dead-letters/redrive", object{"filter": object{"task": "echo"}})
		time.Sleep(20 * time.Minute)
		a.Call("POST", "/dead-letters/purge", object{"filter": object{"task": "echo"}})
		a.Call("POST", "/dead-letters/purge", object{"job_ids": ids})
	}},
	{"tasks and pauses", func(t *testing.T, w *bench) {
		a := w.api
		a.Want(201, "PUT", "/tasks/slow", object{"executor": "go", "pool": "long"})
		a.Call("PUT", "/tasks/slow", object{"executor": "go", "pool": "short"})
		for _, pause := range []string{"task:slow", "all"} {
			a.Call("PUT", "/pauses/"+pause, object{"reason": "to see"})
			a.Post(object{"task": "slow"})
			a.Post(object{"task": "slow", "delay": "1m"})
			time.Sleep(10 * time.Minute)
			a.Call("GET", "/pauses", nil)
			a.Call("DELETE", "/pauses/"+pause, nil)
			time.Sleep(time.Minute)
			for _, until := range []time.Duration{2 * time.Minute, 40 * time.Minute} {
				a.Call("PUT", "/pauses/"+pause, object{"reason": "a while",
					"until": time.Now().Add(until).UTC().Format("2006-01-02T15:04:05.000Z")})
				a.Post(object{"task": "slow"})
				time.Sleep(until + 10*time.Minute)
			}
		}
		a.Call("DELETE", "/tasks/slow", nil)
		a.Call("GET", "/audit?resource=task/slow", nil)
		a.Call("GET", "/usage", nil)
	}},
	{"schedules", func(t *testing.T, w *bench) {
		a := w.api
		a.Call("PUT", "/exclusions/never", object{"dates": []string{"2000-06-06"}})
		a.Call("GET", "/exclusions", nil)
		a.Call("GET", "/exclusions/never", nil)
		a.Call("PUT", "/limits/github", object{"max_running": 5, "rate": object{"count": 100, "per": "1m"}})
		a.Call("GET", "/limits", nil)
		a.Call("GET", "/limits/github", nil)
		a.Call("GET", "/limits/github/keys", nil)
		for i, overlap := range []string{"allow", "skip", "buffer_one", "buffer_all", "cancel_running"} {
			name := "s-" + overlap[:4] + string(rune('a'+i))
			spec := object{"calendar": object{"every": "5m", "exclude": []string{"never"}, "max_runs": 20},
				"overlap": overlap, "pause_after_failures": 3,
				"job": object{"task": "echo", "payload": object{"sleep": "7m",
					"text": strings.Repeat("x", sizes[i%len(sizes)])}, "tags": object{"a": "b"}}}
			a.Call("PUT", "/schedules/"+name, spec)
			time.Sleep(20 * time.Minute)
			a.Call("PATCH", "/schedules/"+name+"?dry_run=true", object{"calendar": object{"every": "6m"}})
			a.Call("PATCH", "/schedules/"+name, object{"calendar": object{"every": "6m"}})
			a.Call("POST", "/schedules/"+name+"/run-now", nil)
			time.Sleep(20 * time.Minute)
			a.Call("POST", "/schedules/"+name+"/pause", object{"reason": "to see"})
			time.Sleep(20 * time.Minute)
			a.Call("POST", "/schedules/"+name+"/resume", nil)
			a.Call("POST", "/schedules/"+name+"/pause", object{"reason": "a while",
				"until": time.Now().Add(30 * time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")})
			for _, path := range []string{"", "/occurrences", "/occurrences?outcome=ran", "/preview"} {
				a.Call("GET", "/schedules/"+name+path, nil)
			}
			time.Sleep(time.Hour)
			a.Call("GET", "/jobs?schedule="+name, nil)
			a.Call("DELETE", "/schedules/"+name, nil)
		}
		a.Call("PUT", "/schedules/failing", object{"calendar": object{"every": "1m"}, "pause_after_failures": 3,
			"job": object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}}})
		a.Call("PUT", "/schedules/few", object{"calendar": object{"every": "1m", "max_runs": 3},
			"job": object{"task": "echo"}})
		a.Call("GET", "/schedules", nil)
		for _, path := range []string{"/forecast?step=15m", "/forecast/calm", "/workers"} {
			a.Call("GET", path, nil)
		}
		a.Call("POST", "/schedules/preview", object{"calendar": object{"every": "1m", "exclude": []string{"never"}},
			"count": 2})
		time.Sleep(time.Hour)
		a.Call("DELETE", "/exclusions/never", nil)
		a.Call("DELETE", "/limits/github", nil)
	}},
	{"schedules that pause and resume", func(t *testing.T, w *bench) {
		a := w.api
		const instant = "2006-01-02T15:04:05.000Z"
		put := func(name string, size int, exclude ...string) {
			a.Call("PUT", "/schedules/"+name, object{"calendar": object{"every": "5m", "exclude": exclude,
				"max_runs": 500},
				"job": object{"task": "echo", "payload": object{"text": strings.Repeat("x", size)},
					"tags": object{"a": "b"}}})
		}
		a.Call("PUT", "/exclusions/never", object{"dates": []string{"2000-06-06"}})
		for i, size := range sizes {
			put("s"+string(rune('a'+i)), size, "never")
		}
		a.Call("PUT", "/schedules/often", object{"calendar": object{"every": "1m"}, "job": object{"task": "echo"}})
		time.Sleep(20 * time.Minute)
		for _, missed := range []string{"drop", "last"} {
			a.Call("PUT", "/pauses/all", object{"reason": "to see", "missed": missed})
			time.Sleep(time.Hour)
			a.Call("DELETE", "/pauses/all", nil)
			time.Sleep(time.Hour)
		}
		// The message that wakes parked jobs is lost: the sweeper wakes them.
		a.Call("PUT", "/pauses/all", object{"reason": "to see", "missed": "drop"})
		time.Sleep(time.Hour)
		w.Fail(stagetest.To(memory.QueueSend, contract.DispatchQueue))
		a.Call("DELETE", "/pauses/all", nil)
		time.Sleep(10 * time.Minute)
		// Neither promoter nor sweeper runs: times are missed.
		w.Fail(func(c memory.Call) bool { return c.Op == memory.TableQuery && c.Ref.Table == contract.Schedules })
		time.Sleep(3 * time.Hour)
		w.World.SetFaults(nil)
		time.Sleep(2 * time.Hour)
		// Few times are missed, and the promoter is the first to run.
		w.Fail(func(c memory.Call) bool { return c.Op == memory.TableQuery && c.Ref.Table == contract.Schedules })
		time.Sleep(contract.Horizon + 3*time.Minute)
		w.Fail(func(c memory.Call) bool { return strings.HasSuffix(c.Ref.PK, "#"+string(store.Swept)) })
		time.Sleep(5 * time.Minute)
		w.World.SetFaults(nil)
		// What the calendar skips is recorded as it passes.
		soon := time.Now().UTC().Add(time.Hour)
		a.Call("PUT", "/exclusions/soon", object{"ranges": []object{{"from": soon.Format(instant),
			"to": soon.Add(3 * time.Hour).Format(instant)}}})
		for i, size := range sizes {
			put("u"+string(rune('a'+i)), size, "soon")
		}
		time.Sleep(8 * time.Hour)
	}},
	{"schedules of dags", ofScheduledRuns},
	{"lost messages are sent once more", func(t *testing.T, w *bench) {
		a := w.api
		lost := func(op, queue string) func(memory.Call) bool {
			return func(c memory.Call) bool { return c.Op == op && strings.HasPrefix(c.Name, queue) }
		}
		const outage = 15 * time.Minute
		a.Post(object{"task": "echo", "delay": "25m"}) // its timer fires during the outage
		time.Sleep(15 * time.Minute)
		w.Fail(lost(memory.QueueSend, "firing-"))
		for _, pool := range contract.Pools {
			for _, priority := range contract.Priorities {
				a.Post(object{"task": "echo", "pool": pool, "priority": priority})
			}
		}
		a.Post(object{"task": "echo", "start_within": "1m"})
		a.Post(object{"task": "echo", "expire_after": "2m"})
		time.Sleep(outage)
		w.World.SetFaults(nil)
		time.Sleep(time.Hour)
		for _, queue := range []string{contract.ReportQueue, contract.RedriveQueue, contract.DispatchQueue} {
			w.Fail(lost(memory.QueueSend, queue))
			a.Post(object{"task": "echo"})
			a.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}})
			time.Sleep(outage)
			w.World.SetFaults(nil)
			time.Sleep(time.Hour)
		}
		w.Fail(stagetest.Every(memory.TimerArm))
		a.Post(object{"task": "echo", "delay": "20m"})
		time.Sleep(time.Minute)
		w.World.SetFaults(nil)
		time.Sleep(time.Hour)
	}},
	{"an index that does not answer for most of an hour", func(t *testing.T, w *bench) {
		for _, pool := range contract.Pools {
			for _, priority := range contract.Priorities {
				w.api.Post(object{"task": "echo", "pool": pool, "priority": priority, "delay": "50m"})
			}
		}
		jobs := make([]object, contract.MaxBatchJobs)
		for i := range jobs {
			jobs[i] = object{"task": "echo", "delay": "49m"}
		}
		for range 3 {
			w.api.Want(200, "POST", "/jobs/batch", object{"jobs": jobs})
		}
		w.Fail(stagetest.Every(memory.TableQuery))
		time.Sleep(40 * time.Minute)
		w.World.SetFaults(nil)
		time.Sleep(time.Hour)
	}},
	{"the first of a line is cancelled while it waits for a retry", func(t *testing.T, w *bench) {
		a := w.api
		a.Call("PUT", "/schedules/line", object{"calendar": object{"every": "1m"}, "overlap": "buffer_all",
			"job": object{"task": "echo", "payload": object{"fail": 9},
				"retry": object{"max_attempts": 9, "initial_delay": "1h"}}})
		time.Sleep(10 * time.Minute)
		for _, i := range a.Want(200, "GET", "/jobs?schedule=line&limit=200", nil)["items"].([]any) {
			if j := i.(object); j["waiting_for"] == "retry" {
				a.Call("POST", "/jobs/"+j["job_id"].(string)+"/cancel", nil)
			}
		}
		time.Sleep(time.Minute)
	}},
	{"expired rows are deleted with their items and blobs", func(t *testing.T, w *bench) {
		a := w.api
		var ids []string
		for _, size := range sizes {
			ids = append(ids, a.Post(object{"task": "echo", "payload": payload(size), "tags": object{"team": "a"}}))
		}
		time.Sleep(5 * time.Minute)
		for _, id := range ids {
			ref := job.Key{Tenant: tenant.Local, ID: job.ID(id)}.Ref()
			if _, err := w.World.Table().Write(t.Context(), item.Write{Ref: ref, Name: "test.expire",
				Set: map[string]any{contract.AttrExpiresAt: time.Now().Unix()}}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		w.World.Table().Expire()
		time.Sleep(5 * time.Minute)
		for _, id := range ids {
			if left := w.World.Blobs().Keys(contract.JobBlobs + string(tenant.Local) + "/" + id); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		}
	}},
	{"unreadable rows are set aside", func(t *testing.T, w *bench) {
		bad := func(n int, wake time.Time) {
			ref := job.Key{Tenant: "acme", ID: job.DeterministicID(wake, "bad", string(rune('a'+n)))}.Ref()
			if _, err := w.World.Table().Write(t.Context(), item.Write{Ref: ref, Name: "test.put", Put: item.Item{
				contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK, "schema_v": int64(99), "status": "SCHEDULED",
				contract.AttrNear: "1",
				"version":         int64(1), "attempt": int64(1), "pool": "short", "priority": "normal",
				"due_at":               wake.UnixMilli(),
				contract.AttrWakeSlice: horizon.SliceOf(wake, 0).String(), contract.AttrWakeAt: wake.UnixMilli(),
			}}); err != nil {
				t.Error(err)
			}
		}
		w.api.Call("PUT", "/schedules/slot", object{"calendar": object{"every": "1m"}, "overlap": "skip",
			"job": object{"task": "echo"}})
		time.Sleep(5 * time.Minute)
		slot, err := w.Store.Slot(t.Context(), schedule.Key{Tenant: tenant.Local, Name: "slot"})
		if err != nil || slot.Holder == "" {
			t.Fatal(slot, err)
		}
		holder := job.Key{Tenant: tenant.Local, ID: slot.Holder}.Ref()
		if _, err := w.World.Table().Write(t.Context(), item.Write{Ref: holder, Name: "test.spoil",
			Set: map[string]any{"schema_v": int64(99)}}); err != nil {
			t.Error(err)
		}
		for n, in := range []time.Duration{-time.Minute, time.Minute, 20 * time.Minute, 50 * time.Minute} {
			bad(n, time.Now().UTC().Truncate(time.Millisecond).Add(in))
		}
		time.Sleep(2 * time.Hour)
	}},
	{"runs of graphs", ofRuns},
	{"dags and runs by REST", ofDags},
	{"jobs after jobs", ofAfter},
	{"jobs under limits", ofLimits},
	{"jobs with unique keys", ofUniqueKeys},
	{"backfills of schedules", ofBackfills},
	{"webhooks", ofWebhooks},
	{"operations on many jobs", ofOperations},
}
