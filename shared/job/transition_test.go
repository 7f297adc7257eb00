package job

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// every builds each transition for a row in the given state, by name.
func every(r Row, now time.Time) map[string]item.Write {
	writes := map[string]item.Write{"row.accept": Accept(r)}
	add := func(w item.Write) { writes[w.Name] = w }
	for _, o := range []Outcome{succeeded(`1`), failed(true), failed(false), {Kind: OutcomeSnoozed}} {
		open := r
		open.Status, open.Failures = Scheduled, 0
		if d, err := Settle(&open, r.Attempt, o, now); err == nil {
			add(d.Write)
		}
	}
	fresh := r
	fresh.Status = Scheduled
	_, w := AcceptEnded(fresh, Skipped, Reason{}, now)
	add(w)
	_, w = AcceptMapped(fresh)
	add(w)
	_, w = CloseMapped(r, Succeeded, Reason{}, now)
	add(w)
	_, w = BeginRun(r, now)
	add(w)
	_, w = CloseRun(r, Succeeded, Reason{}, now)
	add(w)
	_, w = Force(r, ForcedSkip, Reason{}, now)
	add(w)
	_, w = NotifyDone(r, now)
	add(w)
	add(MarkRunning(r.Key, r.Version, r.Attempt, now, 1))
	_, w = RequestStop(r, StopExpire, Reason{Code: CodeStartWithin}, now)
	add(w)
	stopped := r
	stopped.Stop = StopCancel
	_, w = FinishStop(stopped, now)
	add(w)
	_, w = CancelBlocked(r, now)
	add(w)
	add(Follow(r.Key))
	_, w, _ = Release(r, now, "{}", now)
	add(w)
	_, w = EndBlocked(r, Cancelled, Reason{}, "{}", now)
	add(w)
	_, w = EditBlocked(r, Edit{}, "{}")
	add(w)
	_, w = KeepBlocked(r, "{}", now)
	add(w)
	_, w, _ = Reschedule(r, Edit{DueAt: &now}, now)
	add(w)
	_, w = Rewake(r, now.Add(time.Minute), now, 1)
	add(w)
	_, w = RewakePending(r, now.Add(time.Minute))
	add(w)
	_, w = Park(r, now)
	add(w)
	for _, s := range []Status{Scheduled, Blocked} {
		paused := r
		paused.Status = s
		_, w = PauseRow(paused, Claim{}, OwnPause{Since: now}, now)
		add(w)
		_, w, _ = ResumeRow(paused, now)
		add(w)
	}
	_, w = KeepPaused(r, now)
	add(w)
	_, w = Unpark(r, now)
	add(w)
	_, w = Ready(r, now)
	add(w)
	made := r
	made.Epoch, made.ScheduleID = r.Epoch+1, "s"
	_, w, _ = Adopt(r, made, now)
	add(w)
	_, w = Skip(r, Reason{Code: CodeEdited}, now)
	add(w)
	_, w = Bury(r, now)
	add(w)
	_, w = Redriven(r, "X", now)
	add(w)
	add(KeepRow(r.Key, now.Add(time.Hour)))
	add(Forget(r, now))
	return writes
}

//proof:of 56 134
func TestTransitions_StartOnlyWhereTheTableSays(t *testing.T) {
	t.Parallel()
	ofSchedule := func(r *Row) { r.ScheduleID, r.Epoch, r.NominalAt = "s", 3, noon }
	writes := every(scheduled(ofSchedule), noon)
	if len(writes) != len(Transitions) {
		t.Fatalf("%d of %d transitions are exercised", len(writes), len(Transitions))
	}
	for _, tr := range Transitions {
		for _, s := range []Status{Blocked, Scheduled, Running, Succeeded, Dead, Cancelled, Skipped, Expired, Gone} {
			r := scheduled(ofSchedule, func(r *Row) { r.Status = s })
			if tr.Name == "row.finish_stop" {
				r.Stop = StopCancel
			}
			if tr.Name == "row.unpark" {
				r.Parked = true
			}
			if tr.Name == "row.keep" {
				r.ExpiresAt = noon
			}
			allowed := false
			for _, f := range tr.From {
				allowed = allowed || f == s
			}
			if got := item.Any(writes[tr.Name].When, r.Item()); got != allowed {
				t.Errorf("%s from %s: allowed %v, want %v", tr.Name, s, got, allowed)
			}
		}
		if got := item.Any(writes[tr.Name].When, nil); got != (tr.From == nil) {
			t.Errorf("%s of an absent row: allowed %v", tr.Name, got)
		}
	}
}

// Each clause of the protocol's row table: what must refuse the change.
//
//proof:of 69
func TestTransitions_RefuseWhatTheProtocolSays(t *testing.T) {
	t.Parallel()
	attempt := func(r *Row) { r.Attempt++ }
	version := func(r *Row) { r.Version++ }
	stop := func(r *Row) { r.Stop = StopCancel }
	unstop := func(r *Row) { r.Stop = NoStop }
	wake := func(r *Row) { r.WakeAt = r.WakeAt.Add(time.Second) }
	pending := func(r *Row) { r.PendingEffects = PendingDeadLetter }
	newer := func(r *Row) { r.Epoch = 4 }
	ofEpoch3 := func(r *Row) { r.ScheduleID, r.Epoch = "s", 3 }
	redriven := func(r *Row) { r.RedrivenBy = "Y" }
	unpark := func(r *Row) { r.Parked = false }
	follow := func(r *Row) { r.Followed = true }
	blocked := func(r *Row) { r.Status = Blocked }
	pause := func(r *Row) { r.Paused.Since = noon }
	resume := func(r *Row) { r.Paused = OwnPause{} }
	cases := []struct {
		name    string
		state   func(*Row)
		refuses map[string]func(*Row)
		ignores map[string]func(*Row)
	}{
		{"row.running", nil, map[string]func(*Row){"version": version, "attempt": attempt}, nil},
		{"row.succeed", nil, map[string]func(*Row){"attempt": attempt, "followed": follow},
			map[string]func(*Row){"version": version, "stop": stop}},
		{"row.retry", nil, map[string]func(*Row){"attempt": attempt, "stop": stop, "paused": pause},
			map[string]func(*Row){"version": version}},
		{"row.snooze", pause, map[string]func(*Row){"attempt": attempt, "stop": stop, "resumed": resume}, nil},
		{"row.die", nil, map[string]func(*Row){"attempt": attempt, "stop": stop, "followed": follow}, nil},
		{"row.stop", nil, map[string]func(*Row){"attempt": attempt, "stop": stop, "paused": pause},
			map[string]func(*Row){"version": version}},
		{"row.finish_stop", stop, map[string]func(*Row){"attempt": attempt, "no stop": unstop, "followed": follow},
			map[string]func(*Row){"version": version}},
		{"row.pause", nil, map[string]func(*Row){"version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.resume", pause, map[string]func(*Row){"version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.pause_blocked", blocked, map[string]func(*Row){"version": version}, nil},
		{"row.resume_blocked", blocked, map[string]func(*Row){"version": version}, nil},
		{"row.keep_paused", pause, map[string]func(*Row){"version": version, "resumed": resume, "wake": wake}, nil},
		{"row.reschedule", nil, map[string]func(*Row){"version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.rewake", nil, map[string]func(*Row){"attempt": attempt, "wake": wake}, nil},
		{
			"row.rewake_owing", func(r *Row) { r.Status = Dead },
			map[string]func(*Row){"owes": pending, "wake": wake}, nil,
		},
		{"row.park", nil, map[string]func(*Row){"version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.unpark", func(r *Row) { r.Parked = true },
			map[string]func(*Row){"version": version, "attempt": attempt, "not parked": unpark}, nil},
		{"row.adopt", ofEpoch3,
			map[string]func(*Row){"epoch": newer, "version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.begin_run", ofEpoch3,
			map[string]func(*Row){"epoch": newer, "version": version, "attempt": attempt, "stop": stop}, nil},
		{"row.skip", ofEpoch3,
			map[string]func(*Row){"epoch": newer, "attempt": attempt, "stop": stop, "followed": follow},
			map[string]func(*Row){"version": version}},
		{"row.force", nil, map[string]func(*Row){"attempt": attempt, "stop": stop, "followed": follow}, nil},
		{"row.close_mapped", blocked, map[string]func(*Row){"followed": follow}, nil},
		{"row.cancel_blocked", blocked, map[string]func(*Row){"followed": follow}, nil},
		{"row.end_blocked", blocked, map[string]func(*Row){"followed": follow}, nil},
		{"row.release", blocked, map[string]func(*Row){"version": version}, map[string]func(*Row){"followed": follow}},
		{"row.edit_blocked", blocked, map[string]func(*Row){"version": version},
			map[string]func(*Row){"followed": follow}},
		{"row.keep_blocked", blocked, map[string]func(*Row){"wake": wake, "version": version},
			map[string]func(*Row){"followed": follow}},
		{"row.bury", func(r *Row) { r.Status = Dead }, map[string]func(*Row){"owes": pending}, nil},
		{"row.redrive", func(r *Row) { r.Status = Dead }, map[string]func(*Row){"redriven": redriven, "owes": pending},
			nil},
	}
	for _, c := range cases {
		base := scheduled()
		if c.state != nil {
			c.state(&base)
		}
		w := every(base, noon)[c.name]
		if !item.Any(w.When, base.Item()) {
			t.Errorf("%s is refused on the row it was built from", c.name)
		}
		for what, f := range c.refuses {
			r := base
			f(&r)
			if item.Any(w.When, r.Item()) {
				t.Errorf("%s went through although %s differed", c.name, what)
			}
		}
		for what, f := range c.ignores {
			r := base
			f(&r)
			if !item.Any(w.When, r.Item()) {
				t.Errorf("%s must not ask for the %s", c.name, what)
			}
		}
	}
}

func TestTransitions_WriteOnlyWhatTheyChange(t *testing.T) {
	t.Parallel()
	r := scheduled()
	d, err := Settle(&r, 1, succeeded(`1`), noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, attr := range []string{"stop", "version", "cancel_at", "priority", contract.AttrJobID, contract.AttrPK} {
		if _, ok := d.Write.Set[attr]; ok {
			t.Errorf("a success writes %s, and would undo what somebody else wrote there", attr)
		}
	}
	for _, attr := range []string{contract.AttrNear, contract.AttrWakeAt, contract.AttrWakeSlice} {
		if v, ok := d.Write.Set[attr]; !ok || v != nil {
			t.Errorf("a success does not remove %s", attr)
		}
	}
}

func TestTransitions_WriteAWakeUpWhole(t *testing.T) {
	t.Parallel()
	read := scheduled()
	parked, _ := Park(read, noon)
	later := noon.Add(time.Hour)
	_, reschedule, _ := Reschedule(read, Edit{DueAt: &later}, noon)
	retry, err := Settle(&read, 1, failed(false), noon)
	if err != nil {
		t.Fatal(err)
	}
	success, err := Settle(&read, 1, succeeded(`1`), noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []item.Write{reschedule, retry.Write, success.Write} {
		got, ok := apply(t, parked, w)
		if !ok {
			t.Fatalf("%s was refused", w.Name)
		}
		if got.Parked || got.Slice() != w.Applied(parked.Item(), contract.AttrPK,
			contract.AttrJobID).Str(contract.AttrWakeSlice) {
			t.Errorf("after %s the row says parked %v and lies elsewhere", w.Name, got.Parked)
		}
	}
	if _, w := Rewake(read, later, noon, 0); item.Any(w.When, parked.Item()) {
		t.Error("a wake-up that was read before the job was parked is written over the parking place")
	}
}

func TestReschedule_MakesOlderFiringsStale(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{noon.Add(-time.Hour), noon.Add(time.Second), noon.Add(time.Minute),
		noon.Add(time.Hour)} {
		after, w, send := Reschedule(scheduled(), Edit{DueAt: &at}, noon)
		got, ok := apply(t, scheduled(), w)
		if !ok || got.Version != 2 || !got.DueAt.Equal(at) || after.Version != 2 {
			t.Fatalf("%s: version %d due %s", at, got.Version, got.DueAt)
		}
		if verdict, _ := MayStart(got, Claim{Attempt: 1}, 1, 1, false, noon); verdict != Stale {
			t.Errorf("%s: a firing of the old version may %s", at, verdict)
		}
		if send == got.Near && at.Sub(noon) <= contract.Horizon {
			t.Errorf("%s: writer sends %v, stream consumer sends %v", at, send, got.Near)
		}
		if got.WakeAt.Before(noon) {
			t.Errorf("%s: wake-up at %s lies in the past", at, got.WakeAt)
		}
	}
}

//proof:of 109
func TestRedriveOf_IsAlwaysTheSameNewJob(t *testing.T) {
	t.Parallel()
	dead := scheduled(func(r *Row) { r.Status, r.DeadAt, r.Attempt, r.Failures = Dead, noon, 6, 6 })
	a, b := RedriveOf(dead, noon.Add(time.Hour)), RedriveOf(dead, noon.Add(2*time.Hour))
	if a.ID != b.ID || a.ID == dead.ID {
		t.Errorf("redriven as %s and %s", a.ID, b.ID)
	}
	if a.RedriveOf != dead.ID || a.HandlerKey() != dead.ID || a.Attempt != 1 || a.Failures != 0 {
		t.Errorf("new job: %+v", a)
	}
	repeated := a
	repeated.Status, repeated.DeadAt = Dead, noon.Add(3*time.Hour)
	if c := RedriveOf(repeated, noon); c.HandlerKey() != dead.ID || c.RedriveOf != a.ID {
		t.Errorf("a second redrive has key %s of %s, want the root's %s of %s", c.HandlerKey(), c.RedriveOf, dead.ID,
			a.ID)
	}
}

//proof:of 64
func TestRow_SurvivesBeingWrittenAndRead(t *testing.T) {
	t.Parallel()
	for _, r := range []Row{scheduled(), full()} {
		got, err := ParseRow(r.Item())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r) {
			t.Errorf("it became\n%+v, and was\n%+v", got, r)
		}
	}
	for _, spoil := range []func(item.Item){
		func(i item.Item) { i["schema_v"] = int64(9) }, func(i item.Item) { i["status"] = "LOST" },
		func(i item.Item) { i["due_at"] = "noon" },
		func(i item.Item) { delete(i, "version") }, func(i item.Item) { i["retry"] = "often" },
		func(i item.Item) { i["attempts"] = "[" },
		func(i item.Item) { i[contract.AttrJobID] = "1" }, func(i item.Item) { i[contract.AttrPK] = "acme" },
	} {
		i := scheduled().Item()
		spoil(i)
		if _, err := ParseRow(i); err == nil {
			t.Errorf("read a row that cannot be right: %v", i)
		}
	}
}

func TestRow_SizeIsThatOfItsItem(t *testing.T) {
	t.Parallel()
	for _, r := range []Row{scheduled(),
		scheduled(func(r *Row) { r.Status, r.DeadAt, r.ExpiresAt, r.LatenessMS = Dead, noon, noon, -5 })} {
		if r.Size() != r.Item().Size() {
			t.Errorf("%d and %d bytes", r.Size(), r.Item().Size())
		}
	}
}

func TestRow_KeepsAttemptsWhateverTheirErrorsSay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", `a "quoted" \ back`, "two\nlines\tand\x00nul", "日本語 é", "<&>",
		"\xff broken"} {
		want := Row{Attempts: []Attempt{
			{Attempt: 1, Worker: "w1", StartedAt: noon, FinishedAt: noon, LatenessMS: 5, Outcome: "failed",
				Error: &Reason{Code: CodeHandler, Message: text}},
			{Attempt: 2, Worker: text, Outcome: "snoozed"},
		}}
		var row Row
		err := row.decodeAttempts(want.encodeAttempts())
		got := row.Attempts
		text = strings.ToValidUTF8(text, "\ufffd")
		if err != nil || len(got) != 2 || got[0].Error.Message != text || got[1].Worker != text ||
			!got[0].StartedAt.Equal(noon) || got[0].LatenessMS != 5 || got[1].Outcome != "snoozed" {
			t.Errorf("%q came back as %+v, %v", text, got, err)
		}
	}
}
