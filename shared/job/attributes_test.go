package job

import (
	_ "embed"
	"testing"
	"time"

	"punctual/shared/item/itemtest"
)

//go:embed testdata/row.json
var goldenRow string

// full has a value of its own in every field.
func full() Row {
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	return scheduled(func(r *Row) {
		r.Version, r.Attempt, r.Failures, r.Stop = 11, 12, 13, StopCancel
		r.DueAt, r.NominalAt, r.CreatedAt, r.ExpiryAt = at(1), at(2), at(3), at(4)
		r.PendingEffects, r.Waiting, r.Reason = PendingBoth, "retry", Reason{"code", "message"}
		r.Paused = OwnPause{Reason: "reason", By: "by", Since: at(13)}
		r.Attempts = []Attempt{{Attempt: 1, Worker: "w", StartedAt: noon, FinishedAt: noon, LatenessMS: 4,
			Outcome: "failed", Error: &Reason{"c", "m"}}, {Attempt: 2, Outcome: "snoozed"}}
		r.StartedAt, r.FinishedAt, r.LatenessMS, r.CancelRequestedAt = at(5), at(6), 14, at(7)
		r.DeadAt, r.BuriedAt, r.ExpiresAt = at(8), at(9), at(10)

		r.Task, r.Executor, r.Pool, r.Priority = "task", "go", "long", High
		r.Timeout, r.StartWithin, r.ExpireAfter = time.Second, time.Minute, time.Hour
		r.Retry = RetryPolicy{MaxAttempts: 2, InitialDelay: time.Second, Factor: 3.5, MaxDelay: time.Minute,
			Jitter: 0.25, FailOnLost: true}
		r.Keeping = Keeping{MaxResult: 4096, FailLarge: true}
		r.Limits, r.WaitsLimit = LimitsOf(LimitKey{Name: "github", Key: "acct#1"}, LimitKey{Name: "all"}), 2
		r.Unique = Unique{Key: "invoice-42", Until: UntilStarted, OnConflict: ConflictReplace}

		r.ScheduleID, r.Epoch, r.Rule, r.ManualOf = "schedule", 15, "l,3600,60,100,allow", "manual"
		r.Backfill, r.Webhook = "operation", "ops"
		r.Dag, r.DagVersion = "dag", 16
		r.RootID, r.RedriveOf, r.RedrivenBy = "root", "of", "by"

		r.RunID, r.Node, r.Generation, r.ItemNo, r.Items = "run", "node", 17, 18, 19
		r.Parents, r.Followed, r.Forced, r.DefinedSecrets = "{}", true, ForcedSkip, "sign_with"
		r.Slot, r.Permit, r.NodePermit, r.Always = 20, 21, 22, true

		r.Shard, r.WakeAt, r.Parked, r.QueuedBehind = 23, at(11), true, true
		r.Near, r.ReadyAt, r.Postponed = true, at(12), 24

		r.Payload, r.PayloadIn, r.PayloadVer, r.PayloadSize = `{"a":1}`, InItem, 25, 26
		r.Result, r.ResultIn, r.ResultRef, r.Partial = "1", InBlob, "2.7", PartialSize
		r.Labelled = Labelled{true, true}
	})
}

func TestRow_IsStoredWithEveryField(t *testing.T) {
	t.Parallel()
	itemtest.RequireStored(t, goldenRow, full(), Row.Item, ParseRow)
}
