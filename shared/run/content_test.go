package run_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/run"
)

// kept is when the attached items of a run expire that were written at noon: as a node that ended then.
var kept = noon.Add(contract.NodeKept).Unix()

func TestKey_GivesWhatLiesBesideARunAPlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	k := going().Key
	for want, got := range map[string]item.Ref{
		"run":           k.Ref(),
		"beside#params": k.ContentRef("params"),
		"join#a#2":      k.JoinRef("a", 2),
		"end#3":         k.EndRef(3),
		"slot##0":       k.SlotRef("", 0),
		"slot#m#12":     k.SlotRef("m", 12),
	} {
		if got != (item.Ref{Table: contract.Runs, PK: "acme#" + string(k.ID), SK: want}) {
			t.Errorf("%s lies at %+v", want, got)
		}
	}
	if ref := run.DefinitionRef("acme", "h"); ref != (item.Ref{Table: contract.Dags, PK: "definition#acme", SK: "h"}) {
		t.Errorf("a definition lies at %+v", ref)
	}
	if list := run.ListKey("acme"); list != "#list#acme" {
		t.Errorf("the list is %s", list)
	}
}

func TestKeyOf_ReadsWhatRefWrites(t *testing.T) {
	t.Parallel()
	k := going().Key
	got, err := run.KeyOf(item.Item{contract.AttrPK: k.Ref().PK})
	if err != nil || got != k {
		t.Errorf("read %+v, %v", got, err)
	}
	for name, pk := range map[string]string{
		"no separator": "acme", "no tenant": "#" + string(k.ID), "no id": "acme#", "a short id": "acme#01",
	} {
		if _, err := run.KeyOf(item.Item{contract.AttrPK: pk}); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

func TestRun_IsListedByWhenItWasMade(t *testing.T) {
	t.Parallel()
	bare := going().List()
	id := string(going().ID)
	want := item.Item{
		contract.AttrPK: "#list#acme", contract.AttrSK: "2026-11-28T12:00:00.000Z#" + id, contract.AttrExpiresAt: kept,
	}
	if !maps.Equal(bare.Put, want) {
		t.Errorf("got %v, want %v", bare.Put, want)
	}
	of := going(full).List()
	want["dag"], want["schedule"] = "d", "s"
	if !maps.Equal(of.Put, want) {
		t.Errorf("got %v, want %v", of.Put, want)
	}
	if sk := want.Str(contract.AttrSK); run.ListFrom(noon) > sk || run.ListFrom(noon.Add(time.Millisecond)) < sk {
		t.Errorf("%s is not listed from %s", sk, run.ListFrom(noon))
	}
}

func TestRun_KeepsContentBesideItForAsLongAsItMayBeRetried(t *testing.T) {
	t.Parallel()
	w := going().PutContent("params", `{"a":1}`, noon)
	want := item.Item{
		contract.AttrPK: going().Ref().PK, contract.AttrSK: "beside#params", "body": `{"a":1}`,
		contract.AttrExpiresAt: kept,
	}
	if !maps.Equal(w.Put, want) {
		t.Errorf("got %v, want %v", w.Put, want)
	}
}

func TestEvent_IsReadAsItWasWrittenAndInOrder(t *testing.T) {
	t.Parallel()
	e := run.Event{At: noon, By: "me", Action: "skip", Node: "a", Reason: "why", From: "HELD", To: "RUNNING"}
	first := going().PutEvent(e).Put
	got, err := run.ParseEvent(first)
	if err != nil || got != e {
		t.Errorf("read %+v, %v", got, err)
	}
	if until := noon.Add(contract.DeadKept).Unix(); first[contract.AttrExpiresAt] != until {
		t.Errorf("it expires at %v, want %d", first[contract.AttrExpiresAt], until)
	}
	older := first.Str(contract.AttrSK)
	for name, next := range map[string]item.Item{
		"a later epoch of the same instant": going(func(r *run.Run) { r.Epoch = 12 }).PutEvent(e).Put,
		"a later instant":                   going().PutEvent(run.Event{At: noon.Add(time.Millisecond)}).Put,
	} {
		sk := next.Str(contract.AttrSK)
		if sk <= older || sk < run.EventsFrom || sk >= run.EventsTo {
			t.Errorf("%s: %s after %s", name, sk, older)
		}
	}
	if _, err := run.ParseEvent(item.Item{"body": "{"}); err == nil {
		t.Error("a broken event was read")
	}
}

func TestRun_ShowsAPauseWhileNothingElseEndsIt(t *testing.T) {
	t.Parallel()
	paused := func(r *run.Run) { r.Paused = true }
	for want, change := range map[run.Status]func(*run.Run){
		run.Paused:    paused,
		run.Running:   func(r *run.Run) { paused(r); r.Stop = run.StopCancel },
		run.Cancelled: func(r *run.Run) { paused(r); r.Status = run.Cancelled },
		run.Held:      func(r *run.Run) { r.Status = run.Held },
	} {
		if got := going(change).Shown(); got != want {
			t.Errorf("shown as %s, want %s", got, want)
		}
	}
}

func TestStop_HasAReasonForEachNodeThatItEnds(t *testing.T) {
	t.Parallel()
	for stop, want := range map[run.Stop]string{
		run.NoStop: "", run.StopCancel: "run_cancelled", run.StopExpire: "run_expired", run.StopFail: "run_failed",
	} {
		if got := stop.Reason(); got != want {
			t.Errorf("%q gives %q, want %q", stop, got, want)
		}
	}
}

func TestRun_ExpiresOnceAndAtItsTime(t *testing.T) {
	t.Parallel()
	at := func(change ...func(*run.Run)) run.Run {
		return going(append(change, func(r *run.Run) { r.ExpiryAt = noon })...)
	}
	for name, c := range map[string]struct {
		is   run.Run
		now  time.Time
		want bool
	}{
		"just before":          {at(), noon.Add(-time.Millisecond), false},
		"at its time":          {at(), noon, true},
		"later":                {at(), noon.Add(time.Hour), true},
		"once it is stopped":   {at(func(r *run.Run) { r.Stop = run.StopCancel }), noon, false},
		"once it is over":      {at(func(r *run.Run) { r.Status = run.Failed }), noon, false},
		"never without a time": {going(), noon.Add(time.Hour), false},
	} {
		if got := c.is.Expired(c.now); got != c.want {
			t.Errorf("%s: expired is %v", name, got)
		}
	}
}

func TestRun_LiesInTheDueIndexWhileItHasAWakeUp(t *testing.T) {
	t.Parallel()
	if s := going().Slice(); !strings.Contains(s, "2026-11-28T12:01") {
		t.Errorf("it lies in %q", s)
	}
	if s := going(func(r *run.Run) { r.WakeAt = time.Time{} }).Slice(); s != "" {
		t.Errorf("without a wake-up it lies in %q", s)
	}
}

func TestWaiters_HoldEachNodeInTheGenerationThatWaits(t *testing.T) {
	t.Parallel()
	k := going().Key
	for n, want := range map[int]int{0: 0, 1: 1, 60: 1, 61: 2, 120: 2, 121: 3, 500: 9} {
		refs := k.WaiterRefs(n)
		if len(refs) != want || want > 1 && (refs[0].SK != "line#0" || refs[1].SK != "line#1") {
			t.Errorf("%d nodes stand in %v", n, refs)
		}
	}
	refs := k.WaiterRefs(130)
	items := make([]item.Item, len(refs))
	put := func(w item.Write) {
		for i, ref := range refs {
			if ref == w.Ref && item.Any(w.When, items[i]) {
				items[i] = w.Applied(items[i], contract.AttrPK, contract.AttrSK)
			}
		}
	}
	is := func(want map[int]int64) {
		t.Helper()
		if got := run.ReadWaiters(items, 130).Waiting; !maps.Equal(got, want) {
			t.Errorf("in line are %v, want %v", got, want)
		}
	}
	is(map[int]int64{})
	writes := k.AddWaiters(map[int]int64{0: 1, 59: 2, 60: 3, 129: 4}, noon)
	if len(writes) != 3 {
		t.Errorf("%d writes", len(writes))
	}
	for _, w := range writes {
		put(w)
	}
	is(map[int]int64{0: 1, 59: 2, 60: 3, 129: 4})
	put(k.ClaimWaiter(59, 1, 7)) // an older generation
	put(k.ClaimWaiter(60, 3, 7))
	is(map[int]int64{0: 1, 59: 2, 129: 4})
	if got := run.ReadWaiterPage(items[2], run.WaiterPage(129), 130).Waiting; !maps.Equal(got, map[int]int64{129: 4}) {
		t.Errorf("in the last item are %v", got)
	}
	claimed := func(want map[int]int64) {
		t.Helper()
		if got := run.ReadWaiters(items, 130).Claimed; !maps.Equal(got, want) {
			t.Errorf("claimed are %v, want %v", got, want)
		}
	}
	claimed(map[int]int64{60: 7})
	put(k.RemoveWaiter(60, 8))
	claimed(map[int]int64{60: 7})
	put(k.RemoveWaiter(60, 7))
	claimed(map[int]int64{})
	if items[0][contract.AttrExpiresAt] != kept {
		t.Errorf("it expires at %v", items[0][contract.AttrExpiresAt])
	}
}

func TestBucket_GivesAsManyPlacesAsItHas(t *testing.T) {
	t.Parallel()
	b := run.Bucket{Key: going().Key, Owner: "m", No: 3}
	var is item.Item
	do := func(w item.Write) bool {
		if !item.Any(w.When, is) {
			return false
		}
		is = w.Applied(is, contract.AttrPK, contract.AttrSK)
		return true
	}
	for n, step := range []struct {
		write item.Write
		want  bool
		held  string
	}{
		{b.Free("a"), false, "[]"},
		{b.Pass("a", "b"), false, "[]"},
		{b.Take(0, "a", noon), false, "[]"},
		{b.Take(2, "a", noon), true, "[a]"},
		{b.Take(2, "a", noon), false, "[a]"}, // a call repeated after a lost answer
		{b.Take(1, "b", noon), false, "[a]"},
		{b.Take(2, "b", noon), true, "[a b]"},
		{b.Take(2, "c", noon), false, "[a b]"},
		{b.Pass("a", "b"), false, "[a b]"},
		{b.Pass("a", "c"), true, "[b c]"},
		{b.Pass("a", "d"), false, "[b c]"},
		{b.Take(2, "d", noon), false, "[b c]"},
		{b.Free("b"), true, "[c]"},
		{b.Free("b"), false, "[c]"},
		{b.Take(2, "d", noon), true, "[c d]"},
	} {
		if got := do(step.write); got != step.want || fmt.Sprint(run.Holders(is)) != step.held {
			t.Errorf("step %d (%s): %v, held by %v", n, step.write.Name, got, run.Holders(is))
		}
	}
	if is.Int("n") != 2 || is[contract.AttrExpiresAt] != kept {
		t.Errorf("the bucket is %v", is)
	}
}

func TestBucket_SharesTheLimitExactly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 7, 8, 9, 100, 1000, 5000} {
		before := make([]int, run.Buckets(n))
		for open := n; open >= 0; open-- {
			sum := 0
			for no := range before {
				is := run.Bucket{No: no}.Capacity(n, open)
				if is < before[no] || is > 8 {
					t.Fatalf("of %d places, %d in slots, bucket %d has %d after %d", n, open, no, is, before[no])
				}
				before[no] = is
				sum += is
			}
			if sum != n-open {
				t.Fatalf("of %d places, %d in slots, the buckets have %d", n, open, sum)
			}
		}
	}
}

func TestCounters_CountEnds(t *testing.T) {
	t.Parallel()
	k := going().Key
	var counter item.Item
	for n := range int64(3) {
		w := k.CountAt(k.JoinRef("a", 1), 1, noon)
		counter = w.Applied(counter, contract.AttrPK, contract.AttrSK)
		if counter.Int("n") != n+1 || len(w.When) > 0 || counter[contract.AttrExpiresAt] != kept {
			t.Errorf("after %d ends it is %v", n+1, counter)
		}
	}
}

func TestCountItems_RefusesMoreThanARunMayHave(t *testing.T) {
	t.Parallel()
	k := going().Key
	for name, c := range map[string]struct {
		before item.Item
		most   int64
		want   bool
	}{
		"the first":                    {nil, 0, true},
		"up to the most":               {item.Item{"n": int64(7)}, 7, true},
		"beyond it":                    {item.Item{"n": int64(8)}, 7, false},
		"the first, which is too many": {nil, -1, false},
		"more, which is too many":      {item.Item{"n": int64(1)}, -1, false},
	} {
		w := k.CountItems(5, c.most, noon)
		if got := item.Any(w.When, c.before); got != c.want {
			t.Errorf("%s: counted is %v", name, got)
		}
		if n := w.Applied(c.before, contract.AttrPK, contract.AttrSK).Int("n"); n != c.before.Int("n")+5 {
			t.Errorf("%s: they are %d", name, n)
		}
	}
}
