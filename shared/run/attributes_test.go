package run_test

import (
	_ "embed"
	"testing"
	"time"

	"punctual/shared/item/itemtest"
	"punctual/shared/job"
	"punctual/shared/run"
)

//go:embed testdata/run.json
var goldenRun string

func TestRun_IsStoredWithEveryField(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	r := going(func(r *run.Run) {
		r.Dag, r.DagVersion, r.Definition, r.Status = "dag", 11, "hash", run.Held
		r.Reason, r.Stop = job.Reason{Code: "code", Message: "message"}, run.StopFail
		r.StopAll, r.StoppedAt = true, at(10)
		r.Paused, r.Holds, r.InBuckets, r.Tagged, r.Epoch = true, true, true, true, 12
		r.Operation = &run.Operation{
			ID: "x", Kind: run.OperationForce, Node: "a", Forced: job.ForcedSkip, Reason: "why", By: "me",
		}
		r.Nodes = map[string]run.Node{"a": {Generation: 2, Since: 3, Override: job.ForcedComplete, Reason: "why",
			Whole: true, Before: run.Before{Floor: 4, Items: 5}}}
		r.CreatedAt, r.DueAt, r.NominalAt, r.ExpiryAt = at(1), at(2), at(3), at(4)
		r.RetriedAt, r.FinishedAt, r.WakeAt, r.ExpiresAt, r.KeptUntil = at(5), at(6), at(7), at(8), at(9)
		r.Schedule, r.Backfill, r.Notified, r.Priority, r.Params = "schedule", "operation", true, job.High, `{"a":1}`
		r.Shard, r.Tries, r.Lost = 13, 14, true
		r.Events = []run.Announcement{{Status: run.Held, At: 15, Sequence: 16, Reason: job.Reason{Code: "code"}}}
	})
	itemtest.RequireStored(t, goldenRun, r, run.Run.Item, run.Parse)
}
