package run_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func going(change ...func(*run.Run)) run.Run {
	r := run.Run{
		Key:        run.Key{Tenant: "acme", ID: job.DeterministicID(noon, "r")},
		Definition: "hash", Status: run.Running, Epoch: 3,
		CreatedAt: noon, DueAt: noon, WakeAt: noon.Add(time.Minute), Shard: 2,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func full(r *run.Run) {
	r.Dag, r.DagVersion, r.Stop, r.Paused, r.Holds = "d", 4, run.StopFail, true, true
	r.Operation = &run.Operation{
		ID: "x", Kind: run.OperationForce, Node: "a", Forced: job.ForcedSkip, Reason: "why", By: "me",
	}
	r.Nodes = map[string]run.Node{
		"a": {Generation: 2, Since: 3, Override: job.ForcedComplete, Reason: "why", Whole: true},
	}
	r.NominalAt, r.ExpiryAt, r.Schedule, r.Priority, r.Params = noon, noon.Add(time.Hour), "s", job.High, `{"a":1}`
	r.RetriedAt = noon.Add(time.Minute)
	r.Reason = job.Reason{Code: "run_failed", Message: "node a"}
}

func TestRun_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	over := func(r *run.Run) {
		full(r)
		r.Status, r.WakeAt, r.FinishedAt, r.ExpiresAt = run.Failed, time.Time{}, noon, noon.Add(time.Hour)
	}
	for name, r := range map[string]run.Run{"bare": going(), "full": going(full), "over": going(over)} {
		got, err := run.Parse(r.Item())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, r) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, r)
		}
	}
}

func TestParse_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(item.Item){
		"no version":     func(i item.Item) { delete(i, "schema_v") },
		"no epoch":       func(i item.Item) { delete(i, "epoch") },
		"unknown status": func(i item.Item) { i["status"] = "ODD" },
		"broken act":     func(i item.Item) { i["act"] = "{" },
		"broken nodes":   func(i item.Item) { i["nodes"] = "[]" },
		"broken key":     func(i item.Item) { i[contract.AttrPK] = "acme" },
	} {
		i := going(full).Item()
		change(i)
		if _, err := run.Parse(i); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// writes are all writes of a run that is going on, by name.
func writes(r run.Run) map[string]item.Write {
	all := map[string]item.Write{}
	add := func(_ run.Run, w item.Write) { all[w.Name] = w }
	add(r.Built())
	add(r.Halt(run.StopCancel, job.Reason{Code: "c"}, noon))
	add(r.HaltAlways(noon))
	add(r.Pause())
	add(r.Resume(noon))
	add(r.Touch(noon))
	add(r.Begin(run.Operation{ID: "y", Kind: run.OperationRetry}, noon))
	add(r.NoteHolds())
	add(r.End(run.Succeeded, nil, noon))
	add(r.Rest(noon.Add(time.Hour)))
	operating := r
	operating.Operation = &run.Operation{ID: "x", Kind: run.OperationRetry}
	add(operating.Finish(map[string]run.Before{"a": {}}, noon))
	_, w := operating.Withdraw()
	w.Name = "run.withdraw"
	add(operating, w)
	return all
}

// TestWrites_AreRefusedByWhatComesBetween holds the protocol's table: who passes where.
func TestWrites_AreRefusedByWhatComesBetween(t *testing.T) {
	t.Parallel()
	const every = "built stop stop_always pause resume touch begin holds end rest finish withdraw"
	building := func(r *run.Run) { r.Status = run.Building }
	begun := func(id string) func(*run.Run) {
		return func(r *run.Run) { r.Operation = &run.Operation{ID: id} }
	}
	for what, c := range map[string]struct {
		between func(*run.Run)
		pass    string
	}{
		"nothing":       {func(*run.Run) {}, "stop pause resume touch begin holds end rest"},
		"it is built":   {building, "built stop pause resume touch begin holds end rest"},
		"an operation":  {begun("x"), "stop pause resume finish withdraw"},
		"another one":   {begun("z"), "stop pause resume"},
		"a stop":        {func(r *run.Run) { r.Stop = run.StopFail }, "stop_always holds end rest"},
		"its end":       {func(r *run.Run) { r.Status = run.Failed }, "holds"},
		"a newer epoch": {func(r *run.Run) { r.Epoch++ }, ""},
	} {
		between := going(c.between)
		for name, w := range writes(going()) {
			want := false
			for _, p := range split(c.pass) {
				want = want || "run."+p == name
			}
			if got := item.Any(w.When, between.Item()); got != want {
				t.Errorf("%s after %s: passes %v, want %v", name, what, got, want)
			}
		}
	}
	if len(writes(going())) != len(split(every)) {
		t.Errorf("%d writes are exercised", len(writes(going())))
	}
}

func split(s string) []string { return strings.Fields(s) }

func TestWrites_MakeTheItemWhatTheyReturn(t *testing.T) {
	t.Parallel()
	for _, before := range []run.Run{going(), going(func(r *run.Run) { r.Holds, r.Paused = true, true })} {
		operating := before
		operating.Operation = &run.Operation{
			ID: "x", Kind: run.OperationForce, Node: "a", Forced: job.ForcedSkip, Reason: "why",
		}
		for name, do := range map[string]func() (run.Run, run.Run, item.Write){
			"stop": func() (run.Run, run.Run, item.Write) {
				a, w := before.Halt(run.StopCancel, job.Reason{Code: "c"}, noon)
				return before, a, w
			},
			"finish": func() (run.Run, run.Run, item.Write) {
				a, w := operating.Finish(map[string]run.Before{"a": {}, "b": {}}, noon)
				return operating, a, w
			},
			"end": func() (run.Run, run.Run, item.Write) {
				a, w := before.End(run.Failed, nil, noon)
				return before, a, w
			},
			"rest": func() (run.Run, run.Run, item.Write) {
				a, w := before.Rest(noon.Add(time.Hour))
				return before, a, w
			},
			"resume": func() (run.Run, run.Run, item.Write) { a, w := before.Resume(noon); return before, a, w },
		} {
			from, after, w := do()
			got := w.Applied(from.Item(), contract.AttrPK, contract.AttrSK)
			if !maps.Equal(got, after.Item()) {
				t.Errorf("%s:\ngot  %v\nwant %v", name, got, after.Item())
			}
		}
	}
}

func TestFinish_BeginsNewGenerationsAndNothingElse(t *testing.T) {
	t.Parallel()
	r := going(func(r *run.Run) {
		r.Status, r.Stop, r.Holds = run.Failed, run.StopExpire, true
		r.Nodes = map[string]run.Node{"a": {Generation: 2, Since: 2}, "z": {Generation: 5, Since: 2}}
		r.Operation = &run.Operation{ID: "x", Kind: run.OperationForce, Node: "a", Forced: job.ForcedSkip,
			Reason: "why"}
	})
	after, _ := r.Finish(map[string]run.Before{"a": {}, "b": {}}, noon)
	want := map[string]run.Node{
		"a": {Generation: 3, Since: 4, Override: job.ForcedSkip, Reason: "why"}, "b": {Generation: 2, Since: 4},
		"z": {Generation: 5, Since: 2},
	}
	if !reflect.DeepEqual(after.Nodes, want) {
		t.Errorf("nodes %+v", after.Nodes)
	}
	if after.Status != run.Running || after.Stop != run.NoStop || after.Holds || after.Operation != nil ||
		!after.WakeAt.Equal(noon) {
		t.Errorf("the run is %+v", after)
	}
	if len(r.Nodes) != 2 || r.Nodes["a"].Generation != 2 {
		t.Error("the run that was read has changed")
	}
}

//proof:of F50
func TestFinish_CountsExpireAfterAnewForARunThatWasOver(t *testing.T) {
	t.Parallel()
	operation := &run.Operation{ID: "x", Kind: run.OperationRetry}
	of := func(s run.Status) run.Run {
		return going(func(r *run.Run) {
			r.Status, r.Operation, r.DueAt, r.ExpiryAt = s, operation, noon, noon.Add(time.Hour)
		})
	}
	day := noon.Add(24 * time.Hour)
	retried, _ := of(run.Failed).Finish(map[string]run.Before{"a": {}}, day)
	if want := day.Add(time.Hour); !retried.ExpiryAt.Equal(want) {
		t.Errorf("retried the day after: it expires at %s, not at %s", retried.ExpiryAt, want)
	}
	retried.Status, retried.Operation = run.Failed, operation
	retried, _ = retried.Finish(map[string]run.Before{"a": {}}, day.Add(24*time.Hour))
	if want := day.Add(25 * time.Hour); !retried.ExpiryAt.Equal(want) {
		t.Errorf("retried twice: it expires at %s, not at %s", retried.ExpiryAt, want)
	}
	for name, r := range map[string]run.Run{"goes on": of(run.Running), "is held": of(run.Held)} {
		if got, _ := r.Finish(map[string]run.Before{"a": {}}, noon.Add(time.Minute)); !got.ExpiryAt.Equal(r.ExpiryAt) {
			t.Errorf("a run that %s expires at %s, not at %s", name, got.ExpiryAt, r.ExpiryAt)
		}
	}
	got, _ := of(run.Cancelled).Finish(map[string]run.Before{"a": {}}, noon.Add(-time.Hour))
	if !got.ExpiryAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("cancelled and retried before it was due: it expires at %s", got.ExpiryAt)
	}
	never := of(run.Failed)
	never.ExpiryAt = time.Time{}
	if got, _ := never.Finish(map[string]run.Before{"a": {}}, day); !got.ExpiryAt.IsZero() {
		t.Errorf("a run without expire_after expires at %s", got.ExpiryAt)
	}
}

//proof:of F53
func TestFinish_LiftsThePauseThatARunWasStoppedUnder(t *testing.T) {
	t.Parallel()
	for status, paused := range map[run.Status]bool{run.Cancelled: false, run.Failed: false, run.Running: true} {
		r := going(func(r *run.Run) {
			r.Status, r.Paused, r.Operation = status, true, &run.Operation{ID: "x", Kind: run.OperationRetry}
		})
		if after, _ := r.Finish(map[string]run.Before{"a": {}}, noon); after.Paused != paused {
			t.Errorf("a retry of a paused run that is %s leaves it paused: %v", status, after.Paused)
		}
	}
}

func TestMayStart_AsksForAllThatKeepsANodeFromStarting(t *testing.T) {
	t.Parallel()
	row := job.Row{NodeRef: job.NodeRef{Node: "a", Generation: 1}}
	for name, c := range map[string]struct {
		change     func(*run.Run)
		superseded bool
	}{
		"stopped":         {func(r *run.Run) { r.Stop = run.StopCancel }, true},
		"over":            {func(r *run.Run) { r.Status = run.Succeeded }, true},
		"newer":           {func(r *run.Run) { r.Nodes = map[string]run.Node{"a": {Generation: 2}} }, true},
		"paused":          {func(r *run.Run) { r.Paused = true }, false},
		"under an act":    {func(r *run.Run) { r.Operation = &run.Operation{ID: "x"} }, false},
		"past its expiry": {func(r *run.Run) { r.ExpiryAt = noon }, false},
	} {
		r := going(c.change)
		if r.MayStart(row, noon) == "" {
			t.Errorf("a run that is %s lets a node start", name)
		}
		if r.Superseded(row) != c.superseded {
			t.Errorf("%s: superseded is %v", name, !c.superseded)
		}
	}
	if why := going().MayStart(row, noon); why != "" {
		t.Errorf("a run that goes on says %q", why)
	}
}

func TestKey_GivesEachGenerationAndItemAJobOfItsOwn(t *testing.T) {
	t.Parallel()
	k := going().Key
	seen := map[job.ID]bool{}
	for _, node := range []string{"a", "b", "a1"} {
		for g := range int64(3) {
			for no := range int64(3) {
				seen[k.Job(node, g+1, no).ID] = true
			}
		}
	}
	if len(seen) != 27 {
		t.Errorf("%d ids of 27 jobs", len(seen))
	}
	if repeated := k.Job("a", 1, 0); repeated != k.Job("a", 1, 0) {
		t.Error("the same node has two ids")
	}
}

func TestRun_KeepsItsWakeUpUntilItsScheduleIsTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, schedule := range []string{"", "s"} {
		is, _ := run.Create(run.Run{
			Key:        run.Key{Tenant: "acme", ID: job.DeterministicID(now, "r")},
			Definition: "h", DueAt: now, Schedule: schedule,
		}, now)
		over, _ := is.End(run.Failed, nil, now)
		if over.MustNotify() != (schedule != "") || over.WakeAt.IsZero() != (schedule == "") {
			t.Errorf("schedule %q: must tell %v, wakes at %s", schedule, over.MustNotify(), over.WakeAt)
		}
		if may := item.Any(over.Forget().When, over.Item()); may != (schedule == "") {
			t.Errorf("schedule %q: it may be forgotten: %v", schedule, may)
		}
		notified, w := over.NotifyDone()
		if notified.MustNotify() || !notified.WakeAt.IsZero() || !item.Any(w.When, over.Item()) ||
			item.Any(w.When, is.Item()) {
			t.Errorf("schedule %q: once told it is %+v", schedule, notified)
		}
		read, err := run.Parse(notified.Item())
		if err != nil || !read.Notified || !item.Any(notified.Forget().When, notified.Item()) {
			t.Errorf("schedule %q: read it is %+v, %v", schedule, read, err)
		}
	}
}

func TestRun_KeepsItsEventsUntilTheyAreAnnounced(t *testing.T) {
	t.Parallel()
	is := going(func(r *run.Run) { r.Epoch, r.Reason = 3, job.Reason{Code: "c"} })
	held, w := is.End(run.Held, &is.Reason, noon)
	if len(held.Events) != 1 || !held.WakeAt.Equal(noon) || w.Set["events"] == nil ||
		!held.NextWakeUp(noon).Equal(noon.Add(contract.Grace)) {
		t.Fatalf("held: %+v", held)
	}
	over, _ := held.End(run.Failed, &is.Reason, noon.Add(time.Second))
	want := []run.Announcement{
		{Status: run.Held, At: noon.UnixMilli(), Sequence: 6, Reason: is.Reason},
		{Status: run.Failed, At: noon.UnixMilli() + 1000, Sequence: 7, Reason: is.Reason},
	}
	if !slices.Equal(over.Events, want) || over.WakeAt.IsZero() || item.Any(over.Forget().When, over.Item()) {
		t.Errorf("over: %+v", over)
	}
	if _, w := held.NotifyDone(); item.Any(w.When, over.Item()) || !item.Any(w.When, held.Item()) {
		t.Error("an event that came meanwhile is taken for announced")
	}
	done, w := over.NotifyDone()
	if len(done.Events) != 0 || !done.WakeAt.IsZero() || !item.Any(w.When, over.Item()) ||
		!item.Any(done.Forget().When, done.Item()) {
		t.Errorf("announced: %+v", done)
	}
	if quiet, _ := is.End(run.Failed, nil, noon); len(quiet.Events) != 0 || !quiet.WakeAt.IsZero() {
		t.Errorf("without a webhook: %+v", quiet)
	}
}

func TestRun_WakesNextAtTheEarliestTimeThatMatters(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Hour)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*run.Run)
		want   time.Time
	}{
		"a run that goes on":        {func(*run.Run) {}, now.Add(contract.RetryEvery)},
		"a run that is not due yet": {func(r *run.Run) { r.DueAt = now.Add(day) }, now.Add(day + contract.RetryEvery)},
		"a run that is stopped":     {func(r *run.Run) { r.Stop = run.StopCancel }, now.Add(contract.Grace)},
		"a run that was stopped just now": {
			func(r *run.Run) { r.Stop, r.StoppedAt = run.StopCancel, now.Add(-time.Minute) }, now.Add(contract.Grace)},
		"a run that was stopped long ago, and waits for a node that runs always": {
			func(r *run.Run) {
				r.Stop, r.StoppedAt, r.DueAt = run.StopCancel, now.Add(-time.Hour), now.Add(day)
			}, now.Add(contract.RetryEvery)},
		"a run that expires before": {func(r *run.Run) { r.ExpiryAt = now.Add(time.Minute) }, now.Add(time.Minute)},
		"a run that expires later":  {func(r *run.Run) { r.ExpiryAt = now.Add(day) }, now.Add(contract.RetryEvery)},
		"a stopped run that expires": {
			func(r *run.Run) { r.Stop, r.ExpiryAt = run.StopFail, now }, now.Add(contract.Grace)},
		"a run whose items are to be kept before it is due": {
			func(r *run.Run) { r.DueAt = now.Add(30 * day) }, noon.Add(15 * day)},
		"a run whose items were to be kept by now": {
			func(r *run.Run) { r.DueAt, r.KeptUntil = now.Add(30*day), now }, now.Add(contract.RetryEvery)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := going(c.change).NextWakeUp(now); !got.Equal(c.want) {
				t.Errorf("it wakes at %v, want %v", got, c.want)
			}
		})
	}
}

func TestMayStart_LetsNodesStartInAStoppedRunThatRunAlways(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change         func(*run.Run)
		always, others bool
	}{
		"in a run that goes on": {func(*run.Run) {}, true, true},
		"in a stopped run":      {func(r *run.Run) { r.Stop = run.StopExpire }, true, false},
		"in one that was cancelled once more": {
			func(r *run.Run) { r.Stop, r.StopAll = run.StopCancel, true }, false, false},
		"in one of which rows are forgotten": {
			func(r *run.Run) { r.Stop, r.Lost = run.StopExpire, true }, false, false},
		"in one of which rows may be forgotten": {
			func(r *run.Run) { r.Stop, r.KeptUntil = run.StopFail, noon }, false, false},
		"in a run that has ended": {func(r *run.Run) { r.Status = run.Cancelled }, false, false},
		"in an older generation": {func(r *run.Run) {
			r.Stop, r.Nodes = run.StopFail, map[string]run.Node{"a": {Generation: 2}}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := going(c.change)
			for always, want := range map[bool]bool{true: c.always, false: c.others} {
				row := job.Row{NodeRef: job.NodeRef{Node: "a", Generation: 1, Always: always}}
				if why := r.MayStart(row, noon); (why == "") != want {
					t.Errorf("a node with always %v may start: %v (%s), want %v", always, why == "", why, want)
				}
			}
		})
	}
}

func TestHaltAlways_LeavesHowARunWasStopped(t *testing.T) {
	t.Parallel()
	stopped, _ := going(func(r *run.Run) { r.Paused = true }).Halt(run.StopCancel, job.Reason{Code: "x"}, noon)
	if stopped.Status != run.Running || stopped.Paused || !stopped.StoppedAt.Equal(noon) {
		t.Errorf("the stopped run is %+v", stopped)
	}
	all, _ := stopped.HaltAlways(noon.Add(time.Minute))
	if !all.StopAll || all.Stop != run.StopCancel || !all.StoppedAt.Equal(noon) || all.Epoch != stopped.Epoch+1 {
		t.Errorf("after the second cancel the run is %+v", all)
	}
}
