package worker

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// withKey gives a row a unique key.
func withKey(until job.Until) func(*job.Row) {
	return func(r *job.Row) { r.Unique = job.Unique{Key: "k", Until: until, OnConflict: job.ConflictReturn} }
}

func TestWorker_TakesTheUniqueKeyOfAScheduledJobThatIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		holder func(*job.Row) // nil: no job has taken the key
		gone   bool
		starts bool
	}{
		"no job has taken it":            {nil, false, true},
		"the holder has not ended":       {func(*job.Row) {}, false, false},
		"the holder waits for its retry": {func(r *job.Row) { r.Attempt = 2 }, false, false},
		"the holder waits for others": {func(r *job.Row) {
			r.Status, r.Parents = job.Blocked, "{}"
		}, false, false},
		"the holder is final":              {func(r *job.Row) { r.Status = job.Expired }, false, true},
		"the holder is gone":               {func(*job.Row) {}, true, true},
		"the holder has another key":       {func(r *job.Row) { r.Unique.Key = "other" }, false, true},
		"the holder, until started, waits": {func(r *job.Row) { r.Unique.Until = job.UntilStarted }, false, false},
		"the holder, until started, has started": {func(r *job.Row) {
			r.Unique.Until, r.StartedAt = job.UntilStarted, r.DueAt
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				s := b.rule()
				r := b.put(time.Second, of(s), withKey(job.UntilDone))
				if c.holder != nil {
					h := b.put(-time.Minute, withKey(job.UntilDone), c.holder)
					write := job.TakeKey(h, "", time.Now())
					write.Ref = job.UniqueRef(h.Tenant, "k")
					write.Put[contract.AttrPK] = write.PK
					b.Write(write)
					if c.gone {
						b.Write(item.Write{Ref: h.Ref(), Name: "test.gone", Delete: true})
					}
				}
				b.fire(r, 0)
				b.start("a")
				b.sleep(5 * time.Second)
				if started := b.started() == 1; started != c.starts {
					t.Errorf("started: %v", started)
				}
				h, err := b.Store.KeyHolder(t.Context(), r.Tenant, "k", time.Now())
				if err != nil || (h.ID == r.ID) != c.starts {
					t.Errorf("the holder is %+v, %v", h, err)
				}
				if reports := b.reports(); !c.starts && (len(reports) != 1 || reports[0].Kind != message.Reevaluate) {
					t.Errorf("reports %+v", reports)
				}
			})
		})
	}
}

func TestWorker_TakesNoUniqueKeyOfAJobThatHasTakenIt(t *testing.T) {
	within(t, func(b *bench) {
		keyed := b.put(0, withKey(job.UntilDone))
		took := b.Count(stagetest.Writes(job.WriteUniqueTake))
		b.fire(keyed, 0)
		b.start("a")
		b.sleep(time.Second)
		if b.started() != 1 || took() != 0 {
			t.Errorf("started %d, with %d writes of the key", b.started(), took())
		}
	})
}

func TestWorker_MarksTheStartBeforeItHappens(t *testing.T) {
	for name, c := range map[string]struct {
		until  job.Until
		fault  memory.Fault
		cancel bool
		begun  int64
		starts int
	}{
		"until started": {until: job.UntilStarted, begun: 1, starts: 1},
		"until done":    {until: job.UntilDone, starts: 1},
		"the write fails, and is made once more": {until: job.UntilStarted,
			fault: memory.Fault{Fail: fault.Unavailable}, begun: 1, starts: 1},
		"the answer is lost, and it starts later": {until: job.UntilStarted, fault: memory.Fault{Lost: true},
			begun: 1, starts: 1},
		"a cancel comes before it": {until: job.UntilStarted, cancel: true, begun: 1},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				r := b.put(0, withKey(c.until))
				b.Once(stagetest.Writes(job.WriteClaimBegin), func() memory.Fault {
					if c.cancel {
						b.Write(job.FlagCancel(r.Key, 1, b.Claim(r.Key).Token))
					}
					if b.started() != 0 {
						t.Error("it has started before the mark")
					}
					return c.fault
				})
				b.fire(r, 0)
				b.start("a")
				b.sleep(2 * time.Minute)
				if claim := b.Claim(r.Key); claim.Begun != c.begun || b.started() != c.starts {
					t.Errorf("started %d, claim %+v", b.started(), claim)
				}
			})
		})
	}
}
