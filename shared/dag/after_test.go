package dag

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
)

var afterNoon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func TestAfter_SurvivesARow(t *testing.T) {
	t.Parallel()
	for _, a := range []After{
		{Rule: AllSucceeded, Parents: []Parent{{ID: "A"}}},
		{Rule: OneFailed, Delay: 1500 * time.Millisecond, Parents: []Parent{
			{"A", Succeeded}, {"B", Failed}, {"C", Skipped}, {"D", NotEnded},
		}},
		{Rule: AllDone, NotBefore: afterNoon, Parents: []Parent{{ID: "A"}}},
	} {
		got, ok, err := AfterOf(job.Row{Parents: a.Encode()})
		if err != nil || !ok || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v became %+v, %v, %v", a, got, ok, err)
		}
	}
	if _, ok, err := AfterOf(job.Row{}); ok || err != nil {
		t.Errorf("a job after none: %v, %v", ok, err)
	}
	if _, _, err := AfterOf(job.Row{Parents: "{"}); fault.KindOf(err) != fault.Undecodable {
		t.Errorf("what cannot be read: %v", err)
	}
}

func TestAfter_LeavesRoomInTheRow(t *testing.T) {
	t.Parallel()
	a := After{Rule: NoneFailedOneSucceeded, NotBefore: afterNoon}
	for range contract.MaxAfter {
		a.Parents = append(a.Parents, Parent{"01KB4YJ2V0S6Y3Q4M5N6P7R8T9", Succeeded})
	}
	if n := len(a.Encode()); n > 400 {
		t.Errorf("%d bytes", n)
	}
}

func TestAfter_SaysWhyItDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    Rule
		ends    []End
		verdict Verdict
		why     string
	}{
		{AllSucceeded, []End{Succeeded, NotEnded}, Wait, " "},
		{AllSucceeded, []End{Succeeded, Succeeded}, Run, " "},
		{AllSucceeded, []End{Skipped, Failed}, Cancel, "parent_failed job B failed"},
		{AllSucceeded, []End{Succeeded, Skipped}, Skip, "parent_skipped job B was skipped"},
		{AllFailed, []End{Succeeded, Failed}, Skip, "rule_not_met run_if all_failed was not met"},
		{NoneFailed, []End{Skipped, Failed}, Cancel, "parent_failed job B failed"},
	} {
		a := After{Rule: c.rule, Parents: []Parent{{"A", c.ends[0]}, {"B", c.ends[1]}}}
		if v, why := a.Evaluate(); v != c.verdict || why.Code+" "+why.Message != c.why {
			t.Errorf("%s of %v: %s because of %+v", c.rule, c.ends, v, why)
		}
	}
}

func TestAfter_LearnsOfEachEndOnce(t *testing.T) {
	t.Parallel()
	a := After{Parents: []Parent{{"A", Succeeded}, {ID: "B"}, {ID: "C"}, {ID: "D"}}}
	row := func(id job.ID, s job.Status, f job.Forced) job.Row {
		return job.Row{Key: job.Key{ID: id}, Status: s, NodeRef: job.NodeRef{Forced: f}}
	}
	got := a.Learn(row("A", job.Dead, ""), row("B", job.Running, ""), row("C", job.Expired, ""),
		row("D", job.Skipped, job.ForcedSkip))
	want := []Parent{{"A", Succeeded}, {"B", NotEnded}, {"C", Failed}, {"D", Succeeded}}
	if !reflect.DeepEqual(got.Parents, want) || a.Parents[2].End != NotEnded {
		t.Errorf("%v, and before it %v", got.Parents, a.Parents)
	}
	if ids := got.Waits(); len(ids) != 1 || ids[0] != "B" {
		t.Errorf("it waits for %v", ids)
	}
}

func TestAfter_AdmitsByWhatIsKnown(t *testing.T) {
	t.Parallel()
	draft := job.Row{Key: job.Key{Tenant: "t", ID: "01KB4YJ2V0S6Y3Q4M5N6P7R8T9"}, Status: job.Scheduled, Version: 1,
		Attempt: 1, DueAt: afterNoon, CreatedAt: afterNoon, Settings: job.Settings{ExpireAfter: time.Hour}}
	for end, want := range map[End]job.Status{
		NotEnded: job.Blocked, Succeeded: job.Scheduled, Failed: job.Cancelled, Skipped: job.Skipped,
	} {
		r, send := After{Parents: []Parent{{"A", end}}}.Admit(draft, afterNoon)
		if r.Status != want || send != (want == job.Scheduled) || !strings.Contains(r.Parents, "A") ||
			r.WakeAt.IsZero() != r.Status.Final() {
			t.Errorf("after %q it is %s, to be sent %v, waking at %s", end, r.Status, send, r.WakeAt)
		}
		if r.Status == job.Blocked && (job.FiredBySlice(r.DueAt, r.WakeAt) || !r.ExpiryAt.IsZero()) {
			t.Errorf("BLOCKED it is due at %s, and expires at %s", r.DueAt, r.ExpiryAt)
		}
		if r.Status == job.Scheduled && !r.ExpiryAt.Equal(afterNoon.Add(time.Hour)) {
			t.Errorf("SCHEDULED it expires at %s", r.ExpiryAt)
		}
	}
}

func TestAfter_IsNeverDueBeforeItsDelayIsOver(t *testing.T) {
	t.Parallel()
	for _, past := range []time.Duration{0, 1, 32 * time.Microsecond, time.Millisecond - 1} {
		ended := afterNoon.Add(past)
		due := After{Delay: 40 * time.Minute}.Due(ended)
		if late := due.Sub(ended) - 40*time.Minute; late < 0 || late >= time.Millisecond || due.Nanosecond()%1e6 != 0 {
			t.Errorf("due %s after its parents ended at %s", due.Sub(ended), ended)
		}
	}
}
