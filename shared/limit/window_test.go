package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var key = Key{Tenant: tenant.ID("acme"), LimitKey: job.LimitKey{Name: "github", Key: "acct-42"}}

// one is a table of a single item.
type one struct{ is item.Item }

func (o *one) write(w item.Write) bool {
	if !item.Any(w.When, o.is) {
		return false
	}
	o.is = w.Applied(o.is, w.Ref.PK, w.Ref.SK)
	return true
}

// Starts are drawn by clocks that differ, by windows read a while ago, under rates that change. In no window of the
// length start more than the rate says, and a start counts for no longer than a sixtieth more than the length.
func TestDraw_KeepsToTheRateInEveryWindow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		lengths := []time.Duration{time.Second, 7 * time.Second, time.Hour}
		rate := Rate{Count: 1 + random.IntN(12), Per: lengths[random.IntN(3)]}
		var table one
		var starts []time.Time
		now := noon
		read := ParseWindow(nil)
		for range 400 {
			now = now.Add(time.Duration(random.Int64N(int64(rate.Per) / int64(rate.Count))))
			if random.IntN(40) == 0 {
				now = now.Add(2 * rate.Per)
			}
			if random.IntN(3) > 0 {
				read = ParseWindow(table.is)
			}
			counted := 0
			for _, s := range starts {
				if now.Sub(s) < rate.Per {
					counted++
				}
			}
			drawn := table.write(key.Draw(read, rate, now))
			if drawn {
				starts = append(starts, now)
				counted++
			}
			if counted > rate.Count {
				t.Fatalf("seed %d: %d starts within %v, %d may be", seed, counted, rate.Per, rate.Count)
			}
			fresh := ParseWindow(table.is)
			late := rate.Per + rate.Per/slotsPerWindow + 2*time.Millisecond
			still := 0
			for _, s := range starts {
				if now.Sub(s) < late {
					still++
				}
			}
			if left := fresh.Left(rate, now); left < rate.Count-still {
				t.Fatalf("seed %d: %d may start, but only %d of %d have within %v", seed, left, still, rate.Count, late)
			}
			checkNext(t, fresh, rate, now)
		}
	}
}

// checkNext: none may start before Next, and one may then.
func checkNext(t *testing.T, w Window, r Rate, now time.Time) {
	t.Helper()
	next := w.Next(r, now)
	if w.Left(r, next) == 0 {
		t.Fatalf("none may start at %v, which is said to be the next start; now is %v", next, now)
	}
	if next.After(now) && w.Left(r, next.Add(-time.Millisecond)) > 0 {
		t.Fatalf("one may start before %v already; now is %v", next, now)
	}
}

// A start that did not happen is uncounted once; long after, nothing is left to uncount.
func TestGiveBack_UncountsAStart(t *testing.T) {
	t.Parallel()
	rate := Rate{Count: 2, Per: time.Minute}
	var table one
	for range 2 {
		if !table.write(key.Draw(ParseWindow(table.is), rate, noon)) {
			t.Fatal("a start was refused")
		}
	}
	if table.write(key.Draw(ParseWindow(table.is), rate, noon)) {
		t.Fatal("a third start was counted")
	}
	if !table.write(key.GiveBack(noon, rate)) || ParseWindow(table.is).Left(rate, noon) != 1 {
		t.Errorf("after one was given back: %+v", table.is)
	}
	if table.write(key.GiveBack(noon.Add(-time.Hour), rate)) || table.write(key.GiveBack(noon.Add(time.Hour), rate)) {
		t.Errorf("a start of another time was given back: %+v", table.is)
	}
}

// A rate of another length counts each start that it did before, as of the end of its slot at the latest.
func TestDraw_KeepsStartsWhenTheLengthChanges(t *testing.T) {
	t.Parallel()
	for _, lengths := range [][2]time.Duration{
		{time.Minute, time.Hour}, {time.Hour, time.Minute}, {time.Second, 24 * time.Hour},
	} {
		was, is := Rate{Count: 5, Per: lengths[0]}, Rate{Count: 5, Per: lengths[1]}
		var table one
		for range 4 {
			if !table.write(key.Draw(ParseWindow(table.is), was, noon)) {
				t.Fatal("a start was refused")
			}
		}
		now := noon.Add(min(was.Per, is.Per) / 2)
		draw := func() bool { return table.write(key.Draw(ParseWindow(table.is), is, now)) }
		if !draw() || draw() {
			t.Errorf("%v: not one more start was counted: %+v", lengths, table.is)
		}
		later := noon.Add(is.Per + is.Per/slotsPerWindow + was.Per/slotsPerWindow + time.Second)
		if left := ParseWindow(table.is).Left(is, later); left < 4 {
			t.Errorf("%v: %d may start at %v", lengths, left, later)
		}
		if table.is.Size() > 1000 {
			t.Errorf("the item has %d bytes", table.is.Size())
		}
	}
}
