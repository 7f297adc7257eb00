package store_test

import (
	"context"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

func TestStore_FindsSchedulesByNameByTimeAndByOutcome(t *testing.T) {
	t.Parallel()
	w := memory.New(memory.Options{})
	t.Cleanup(w.Close)
	s := store.New(w.Table(), w.Blobs())
	ctx := context.Background()
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	var all []schedule.Schedule
	for _, name := range []string{"a", "b", "c", "d"} {
		cron := "0 0 * * *"
		one, write, err := schedule.Create(nil,
			schedule.Schedule{Key: schedule.Key{Tenant: "acme", Name: name}, Spec: calendar.Spec{Cron: &cron}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, write); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	_, writes := schedule.Delete(all[1], nil, now)
	if err := s.Commit(ctx, writes...); err != nil {
		t.Fatal(err)
	}
	page, more, err := s.Schedules(ctx, "acme", "", 2)
	if err != nil || !more || len(page) != 2 || page[0].Name != "a" || page[1].Name != "c" {
		t.Fatalf("page %v, more %v, %v", page, more, err)
	}
	if page, more, err = s.Schedules(ctx, "acme", "c", 2); err != nil || more || len(page) != 1 || page[0].Name != "d" {
		t.Errorf("page %v, more %v, %v", page, more, err)
	}
	if gone, err := s.Schedule(ctx, all[1].Key); err != nil || !gone.Deleted() || gone.Epoch != 2 {
		t.Errorf("a deleted one is %+v, %v", gone, err)
	}
	if _, err := s.Schedule(ctx, schedule.Key{Tenant: "other", Name: "a"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant's: %v", err)
	}
	due, _, err := s.DueSchedules(ctx, store.DueQuery{Slice: all[0].Slice()})
	if err != nil || len(due) != 3 || due[0].Err != nil {
		t.Errorf("due: %v, %v", due, err)
	}

	e := schedule.Entry{Key: all[0].Key, Epoch: 1, From: now, To: now.Add(time.Hour), Count: 2,
		Outcome: schedule.Missed, Reason: schedule.ReasonOutage, Why: "w", At: now}
	if err := s.Put(ctx, e.Put()); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Recorded(ctx, e.Key, now, now.Add(time.Millisecond), false, 10,
		""); err != nil || len(got) != 1 || got[0] != e {
		t.Errorf("recorded %+v, %v", got, err)
	}
	if got, _, err := s.Recorded(ctx, e.Key, now.Add(time.Millisecond), time.Time{}, false, 10,
		""); err != nil || len(got) != 0 {
		t.Errorf("recorded later: %+v, %v", got, err)
	}
	o := calendar.Occurrence{NominalAt: now.Add(12 * time.Hour), DueAt: now.Add(12 * time.Hour)}
	r, _ := all[0].Job(o, 4, now)
	if err := s.Put(ctx, job.Accept(r)); err != nil {
		t.Fatal(err)
	}
	if jobs, _, err := s.JobsOf(ctx, e.Key, o.NominalAt, o.NominalAt.Add(time.Millisecond), true, 10,
		""); err != nil || len(jobs) != 1 || jobs[0].ID != r.ID || !jobs[0].NominalAt.Equal(o.NominalAt) {
		t.Errorf("jobs %v, %v", jobs, err)
	}

	var asked []time.Time // the job's time is the newest of more than one read is about
	for n := range 150 {
		asked = append(asked, o.NominalAt.Add(time.Duration(n-149)*time.Minute))
	}
	for _, what := range []string{"made", "forgotten"} {
		if has, err := s.HaveJobs(ctx, e.Key, asked); err != nil || len(has) != 1 || !has[o.NominalAt] {
			t.Errorf("%s: there are jobs at %v, %v", what, has, err)
		}
		gone := job.Forget(r, now)
		gone.When = nil
		if err := s.Put(ctx, gone); err != nil {
			t.Fatal(err)
		}
	}

	for _, size := range []int{10, 1000, 300 << 10} {
		c := all[0]
		body := make([]byte, size)
		for i := range body {
			body[i] = '1'
		}
		c.SetPayload(body)
		if err := s.PutSchedulePayload(ctx, c, body); err != nil {
			t.Fatal(err)
		}
		if got, err := s.SchedulePayload(ctx, c); err != nil || string(got) != string(body) {
			t.Errorf("a payload of %d bytes came back as %d, %v", size, len(got), err)
		}
	}

	two := 2
	c := all[0]
	c.Spec.MaxRuns = &two
	for n, want := range []bool{true, true, false} {
		row := job.Row{Key: job.Key{Tenant: "acme", ID: job.DeterministicID(now, string(rune('a'+n)))}, DueAt: now}
		if counted, full, err := s.RunsOf(ctx, c, row.ID); err != nil || counted || full[0] == want {
			t.Errorf("run %d: counted %v, full %v, %v", n+1, counted, full, err)
		}
		if err := s.Commit(ctx, c.CountRun(row, []bool{false})...); (err == nil) != want {
			t.Errorf("run %d: %v", n+1, err)
		}
		if counted, _, err := s.RunsOf(ctx, c, row.ID); err != nil || counted != want {
			t.Errorf("run %d: counted %v, %v", n+1, counted, err)
		}
	}
	if err := s.Put(ctx, c.TakeSlot("A")); err != nil {
		t.Fatal(err)
	}
	if slot, err := s.Slot(ctx, c.Key); err != nil || slot.Holder != "A" {
		t.Errorf("slot %+v, %v", slot, err)
	}
	bad := c.Item()
	bad["epoch"] = "x"
	if err := s.Put(ctx, item.Write{Ref: c.Ref(), Name: "test.put", Put: bad}); err != nil {
		t.Fatal(err)
	}
	if page, _, err := s.Schedules(ctx, "acme", "",
		1); err != nil || len(page) != 1 || fault.KindOf(page[0].Err) != fault.Undecodable || page[0].Name != "a" {
		t.Errorf("a spoiled one is %+v, %v", page, err)
	}
}
