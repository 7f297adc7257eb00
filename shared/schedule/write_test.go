package schedule

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Each case breaks one clause of the protocol's "Schedules", so that the write is refused.
func TestWrites_RefuseWhatTheProtocolSays(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Hour)
	s := made(t, "0 * * * *", noon)
	paused, _ := PauseSchedule(s, Pause{}, noon)
	deleted, _ := Delete(s, nil, noon)
	failing := s
	failing.Failures, failing.LastDead = 1, "A"
	epoch := func(i item.Item) { i["epoch"] = i.Int("epoch") + 1 }
	next := func(i item.Item) { i["next"] = i.Int("next") + 1 }
	noNext := func(i item.Item) { delete(i, "next") }
	gone := func(i item.Item) { i["deleted_at"] = now.UnixMilli() }
	cal, _ := s.Calendar()
	edit := func(s Schedule) item.Write {
		_, writes, err := Edit(s, s, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		return writes[0]
	}
	of := func(_ Schedule, w item.Write) item.Write { return w }
	ofMany := func(_ Schedule, w []item.Write) item.Write { return w[0] }
	created, w, err := Create(&deleted, s, now)
	if err != nil || created.Epoch != deleted.Epoch+1 || created.Deleted() {
		t.Fatalf("created %+v, %v", created, err)
	}
	several := listed(t, noon, calendar.Spec{Cron: new("0 * * * *"), MaxRuns: new(1)},
		calendar.Spec{Cron: new("30 9 * * *")})
	_, spent, err := Spend(several, []bool{true, false}, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		on      Schedule
		write   item.Write
		refuses map[string]func(item.Item)
	}{
		"create over a tombstone": {deleted, w, map[string]func(item.Item){"epoch": epoch,
			"not deleted": func(i item.Item) { delete(i, "deleted_at") }}},
		"edit": {s, edit(s), map[string]func(item.Item){"epoch": epoch, "deleted": gone}},
		"pause": {s, of(PauseSchedule(s, Pause{}, now)), map[string]func(item.Item){"epoch": epoch,
			"deleted": gone}},
		"resume": {paused, of(Resume(paused, "", now)), map[string]func(item.Item){"epoch": epoch,
			"deleted": gone, "not paused": func(i item.Item) { delete(i, "paused") }}},
		"delete": {s, ofMany(Delete(s, nil, now)), map[string]func(item.Item){"epoch": epoch,
			"deleted": gone}},
		"advance": {s, ofMany(Advance(s, s.PlanNext(cal, now, nil), now)),
			map[string]func(item.Item){"epoch": epoch, "next": next, "no next": noNext, "deleted": gone}},
		"hold": {s, of(Hold(s, job.Pause{Since: now}, now)),
			map[string]func(item.Item){"epoch": epoch, "next": next}},
		"release": {s, of(Release(s, nil, now)), map[string]func(item.Item){"epoch": epoch, "next": next}},
		"end": {s, of(End(s, job.CodeMaxRuns, now)), map[string]func(item.Item){"epoch": epoch,
			"next": next}},
		"spend": {several, spent, map[string]func(item.Item){"epoch": epoch, "next": next, "deleted": gone}},
		"check": {s, Is(s), map[string]func(item.Item){"epoch": epoch}},
		"count a death": {failing, CountDead(failing, "B"), map[string]func(item.Item){"epoch": epoch,
			"counted": func(i item.Item) { i["last_dead"] = "B" }}},
		"forget deaths": {failing, ForgetDead(failing), map[string]func(item.Item){"epoch": epoch,
			"none": func(i item.Item) { delete(i, "failures") }}},
	} {
		base := c.on.Item()
		if !item.Any(c.write.When, base) {
			t.Errorf("%s is refused on the item it was built from", name)
		}
		if item.Any(c.write.When, nil) {
			t.Errorf("%s goes through where there is none", name)
		}
		for what, spoil := range c.refuses {
			i := maps.Clone(base)
			spoil(i)
			if item.Any(c.write.When, i) {
				t.Errorf("%s goes through although %s differs", name, what)
			}
		}
	}
	_, w, _ = Create(nil, s, now)
	if !item.Any(w.When, nil) || item.Any(w.When, s.Item()) {
		t.Error("a first create depends on something else than that there is none")
	}
}

func TestWrites_SetWhatTheySay(t *testing.T) {
	t.Parallel()
	s := made(t, "0 * * * *", noon)
	now := noon.Add(20 * time.Minute)
	cal, _ := s.Calendar()
	apply := func(name string, before, after Schedule, w item.Write) {
		t.Helper()
		got, err := Parse(w.Applied(before.Item(), "pk", "sk"))
		if err != nil || !reflect.DeepEqual(got.Item(), after.Item()) {
			t.Errorf("%s: %v\nwrote %v\nsaid  %v", name, err, got.Item(), after.Item())
		}
	}
	paused, w := PauseSchedule(s, Pause{Reason: "r", By: "b", Until: now.Add(time.Hour)}, now)
	apply("pause", s, paused, w)
	if !paused.WakeAt.Equal(now.Add(time.Hour)) {
		t.Errorf("a pause until %s wakes at %s", paused.Paused.Until, paused.WakeAt)
	}
	resumed, w := Resume(paused, "", now.Add(time.Minute))
	apply("resume", paused, resumed, w)
	held, w := Hold(resumed, job.Pause{Since: now, Missed: MissedDrop}, now)
	apply("hold", resumed, held, w)
	if !strings.HasPrefix(held.Slice(), "parked#acme#") {
		t.Errorf("held in %s", held.Slice())
	}
	released, w := Release(held, nil, now)
	apply("release", held, released, w)
	ended, w := End(s, job.CodeMaxRuns, now)
	apply("end", s, ended, w)
	if ended.Slice() != "" {
		t.Error("an ended schedule has a wake-up")
	}
	deleted, writes := Delete(s, nil, now)
	apply("delete", s, deleted, writes[0])
	advanced, writes := Advance(s, s.PlanNext(cal, noon.Add(40*time.Minute), nil), noon.Add(40*time.Minute))
	apply("advance", s, advanced, writes[0])
	edited := s
	edited.PauseAfter = 3
	after, writes, err := Edit(s, edited, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	apply("edit", s, after, writes[0])
	if !Unchanged(s, s) || Unchanged(s, edited) {
		t.Error("Unchanged is wrong")
	}
}

//proof:of 9 67
func TestSchedule_SurvivesItemAndParse(t *testing.T) {
	t.Parallel()
	zone, spread := "Europe/Berlin", "1m"
	full := made(t, "0 9 * * *", noon, func(s *Schedule) {
		s.Spec.Timezone, s.Spec.Spread, s.Overlap, s.PauseAfter = &zone, &spread, OverlapSkip, 3
	})
	full.SetPayload([]byte(`{"a":"` + strings.Repeat("x", 300) + `"}`))
	full.Paused = &Pause{Reason: "r", Since: noon, EffectiveAt: noon, Missed: MissedAll}
	full.Held, full.AdoptThrough, full.EndedBy, full.Failures, full.LastDead, full.Shard = &Stretch{From: noon}, noon,
		"max_runs", 2, "A", 7
	got, err := Parse(full.Item())
	if err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("%v\nread  %+v\nwrote %+v", err, got, full)
	}
	if full.Template.PayloadIn != job.InItem || full.Template.PayloadHash == "" {
		t.Errorf("a long payload went to %q", full.Template.PayloadIn)
	}
	for _, spoil := range []func(item.Item){
		func(i item.Item) { i["schema_v"] = int64(9) }, func(i item.Item) { delete(i, "epoch") },
		func(i item.Item) { i["next"] = "soon" },
		func(i item.Item) { i["body"] = "{" }, func(i item.Item) { i["paused"] = "x" },
		func(i item.Item) { i["held"] = "[" }, func(i item.Item) { i["pk"] = "a#b" },
	} {
		i := full.Item()
		spoil(i)
		if _, err := Parse(i); fault.KindOf(err) != fault.Undecodable {
			t.Errorf("read an item that cannot be right: %v", err)
		}
	}
	// An unreadable calendar does not spoil the item: S06, S07, S11.
	for _, cron := range []string{"TZ=UTC", "0 0 31 4 *", "@every 0s"} {
		bad := full
		bad.Spec = calendar.Spec{Cron: &cron}
		read, err := Parse(bad.Item())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read.Calendar(); err == nil {
			t.Errorf("%q makes a calendar", cron)
		}
	}
}

func TestSlot_LetsOneRunAndOneWait(t *testing.T) {
	t.Parallel()
	k := Key{"acme", "s"}
	held := item.Item{"pk": "slot#acme#s", "holder": "A", "waiting": "B"}
	for name, c := range map[string]struct {
		w    item.Write
		on   item.Item
		want bool
	}{
		"empty":                     {k.TakeSlot("C"), nil, true},
		"held by another":           {k.TakeSlot("C"), held, false},
		"one's own":                 {k.TakeSlot("A"), held, true},
		"from who was seen":         {k.TakeSlotFrom("C", "A"), held, true},
		"from who is there no more": {k.TakeSlotFrom("C", "X"), held, false},
		"wait as seen":              {k.Wait("C", Slot{"A", "B"}), held, true},
		"wait, somebody waits":      {k.Wait("C", Slot{"A", ""}), held, false},
		"wait, somebody else holds": {k.Wait("C", Slot{"X", "B"}), held, false},
	} {
		if got := item.Any(c.w.When, c.on); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	me, before, later := job.Row{Key: job.Key{ID: "M"}, NominalAt: noon}, job.Row{Key: job.Key{ID: "B"},
		NominalAt: noon.Add(-time.Hour)}, job.Row{Key: job.Key{ID: "L"}, NominalAt: noon.Add(time.Hour)}
	for _, c := range []struct {
		policy  Overlap
		waiting *job.Row
		action  OverlapAction
		instead bool
	}{
		{OverlapSkip, nil, ActionSkip, false}, {OverlapBufferOne, nil, ActionWait, false}, {OverlapBufferOne, &before,
			ActionSkip, false}, {OverlapBufferOne, &me, ActionWait, false},
		{OverlapBufferAll, &before, ActionWait, false}, {OverlapCancelRunning, nil, ActionCancel, false},
		{OverlapCancelRunning, &before, ActionCancel, true}, {OverlapCancelRunning, &later, ActionSkip, false},
	} {
		if action, instead := (Schedule{Overlap: c.policy}).OnOverlap(me, c.waiting); action != c.action ||
			instead != c.instead {
			t.Errorf("%s behind %v: %s, %v", c.policy, c.waiting, action, instead)
		}
	}
}

func TestCountRun_CountsOnceUpToTheLimit(t *testing.T) {
	t.Parallel()
	two := 2
	s := made(t, "* * * * *", noon, func(s *Schedule) { s.Spec.MaxRuns = &two })
	w := s.CountRun(job.Row{Key: job.Key{ID: "A"}, DueAt: noon}, []bool{false})
	if !item.Any(w[0].When, nil) || item.Any(w[0].When, item.Item{"pk": "x"}) {
		t.Error("a job is not counted exactly once")
	}
	if !item.Any(w[1].When, nil) || !item.Any(w[1].When, item.Item{"runs": int64(1)}) ||
		item.Any(w[1].When, item.Item{"runs": int64(2)}) {
		t.Error("the limit does not hold")
	}
	other := s
	other.CreatedAt = noon.Add(time.Hour)
	if other.RunsRef(0) == s.RunsRef(0) {
		t.Error("a schedule created anew goes on counting")
	}
}

func TestSchedule_StandingFollowsEpochAndPause(t *testing.T) {
	t.Parallel()
	s := made(t, "0 * * * *", noon)
	s.Epoch = 3
	paused, deleted := s, s
	paused.Paused = &Pause{Until: noon}
	deleted.DeletedAt = noon
	row := func(epoch, attempt int64, at time.Time) job.Row {
		return job.Row{ScheduleRef: job.ScheduleRef{Epoch: epoch, ScheduleID: "s"}, Attempt: attempt, NominalAt: at,
			DueAt: at.Add(time.Second)}
	}
	for name, c := range map[string]struct {
		s    Schedule
		r    job.Row
		want Validity
	}{
		"of this epoch":         {s, row(3, 1, noon), Current},
		"older, time passed":    {s, row(2, 1, noon), Passed},
		"older, time to come":   {s, row(2, 1, s.Next), ToBeAdopted},
		"older, retrying":       {s, row(2, 2, noon), Current},
		"paused":                {paused, row(2, 2, noon), IsPaused},
		"deleted":               {deleted, row(2, 2, noon), IsDeleted},
		"deleted, of the epoch": {deleted, row(3, 1, noon), IsDeleted},
	} {
		if got := c.s.ValidityOf(c.r, c.r.Attempt > 1); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if ok, _ := c.s.MayStart(c.r, c.r.Attempt > 1); ok != (c.want == Current) {
			t.Errorf("%s: may start is %v", name, ok)
		}
	}
}
