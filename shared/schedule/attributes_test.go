package schedule

import (
	_ "embed"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/item"
	"punctual/shared/item/itemtest"
	"punctual/shared/job"
)

//go:embed testdata/schedule.json
var goldenSchedule string

func TestSchedule_IsStoredWithEveryField(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	s := Schedule{
		Key: Key{"acme", "nightly"}, Epoch: 11, CreatedAt: at(1), UpdatedAt: at(2), Raised: []time.Time{at(3), at(1)},
		Before: []time.Time{at(4), at(5)}, Next: at(6), Seen: at(7), AdoptThrough: at(8), EditedAt: at(9),
		Rules: "2026f", Shard: 12, WakeAt: at(10), Parked: true, EndedBy: "max_runs", Failures: 13, LastDead: "dead",
		Overlap: OverlapSkip, PauseAfter: 14,
		CatchUp: CatchUp{Policy: CatchUpAll, Window: time.Hour, Cap: 15, After: 2 * time.Hour},
		Paused: &Pause{Reason: "why", By: "me", Since: at(11), EffectiveAt: at(12), Until: at(13),
			Missed: MissedAll},
		Held:      &Stretch{From: at(14), To: at(15), Missed: MissedLast, Before: &Stretch{From: at(16), To: at(17)}},
		DeletedAt: at(18),
		Events: []Announcement{{Kind: WasPaused, At: 1, Sequence: 2, First: 3, Last: 4, Count: 5,
			Reason: job.Reason{Code: "outage"}, Pause: &Pause{By: "me"}}},
		Sequence: 2,
	}
	s.Exclusions = calendar.Exclusions{"holidays": {}}
	s.Spec = calendar.Spec{
		Cron: new("cron"), Every: new("every"), Phase: new("phase"), Dates: []string{"date"}, RRule: new("rrule"),
		Timezone: new("zone"), StartAt: new("start"), EndAt: new("end"), MaxRuns: new(18),
		Exclude: []string{"holidays"}, MissingHour: new("skip"), RepeatedHour: new("last"), Spread: new("1m"),
	}
	s.Specs = []calendar.Spec{{Cron: new("another")}}
	s.Spent = []bool{false, true, false, false, false, false, false, false, false, false}
	s.Template = Template{
		DagRef: job.DagRef{Dag: "dag", DagVersion: 16}, Settings: job.Settings{Task: "task", Executor: "go",
			Pool: "long", Priority: job.High,
			Timeout:     time.Second,
			StartWithin: time.Minute, ExpireAfter: time.Hour, Retry: job.RetryPolicy{MaxAttempts: 2,
				InitialDelay: time.Second, Factor: 3.5, MaxDelay: time.Minute, Jitter: 0.25, FailOnLost: true},
			Limits:  job.LimitsOf(job.LimitKey{Name: "github", Key: "acct#1"}),
			Unique:  job.Unique{Key: "k", Until: job.UntilStarted, OnConflict: job.ConflictReturn},
			Keeping: job.Keeping{MaxResult: 4096, FailLarge: true}},
		Labels:  job.Labels{Tags: `{"a":"b"}`, Metadata: `{"c":1}`},
		Payload: `{"d":2}`, PayloadIn: job.InItem, PayloadHash: "hash", PayloadSize: 17,
		Literals: &job.Literals{Pointers: []string{"/payload/d"}, By: "me"},
	}
	s.Announced = AllKinds // not stored
	itemtest.RequireStored(t, goldenSchedule, s, Schedule.Item, func(i item.Item) (Schedule, error) {
		read, err := Parse(i)
		read.Announced = AllKinds
		return read, err
	})
}
