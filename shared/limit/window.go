package limit

import (
	"maps"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// The starts of a key are counted in slots of a sixtieth of the window. A start counts until sixty slots after its own
// have passed: never less than the window, and at most a sixtieth of it more. The sum over the slots that count is kept
// with them, so that a start is one conditional write that any number of workers may make at a time.

// slotsPerWindow is how many slots a window has.
const slotsPerWindow = 60

// Soon is how long a worker holds an attempt until the rate of a limit lets it start. A job that may start as soon as
// that is fired already, so that it starts on time.
const Soon = time.Second

// Window is what is stored of a key's starts.
type Window struct {
	Per  time.Duration // that the slots are of; 0 if nothing was ever counted
	Slot int64         // the newest that has counted a start, or that was cleared for one
	N    int           // starts in the slots that count
	In   map[int64]int // starts of each of these that has any
}

func slotOf(at time.Time, per time.Duration) int64 {
	return at.UnixMilli() * slotsPerWindow / per.Milliseconds()
}

// begins is when a slot begins: the first millisecond of it.
func begins(slot int64, per time.Duration) time.Time {
	ms := per.Milliseconds()
	return time.UnixMilli((slot*ms + slotsPerWindow - 1) / slotsPerWindow).UTC()
}

// slotName is the attribute of a slot. One more than a window's slots are used in turn.
func slotName(slot int64) string { return "s" + strconv.FormatInt(slot%(slotsPerWindow+1), 10) }

// ParseWindow reads the item of a window; nil is one in which nothing was counted.
func ParseWindow(i item.Item) Window {
	w := Window{
		Per: time.Duration(i.Int("per_ms")) * time.Millisecond, Slot: i.Int("slot"), N: int(i.Int("n")),
		In: map[int64]int{},
	}
	for slot := w.Slot - slotsPerWindow; slot <= w.Slot; slot++ {
		if n := i.Int(slotName(slot)); n != 0 {
			w.In[slot] = int(n)
		}
	}
	return w
}

// of is the window by slots of another length: each start counts as one at the end of its slot.
func (w Window) of(per time.Duration, now time.Time) Window {
	if w.Per == per {
		return w
	}
	is := Window{Per: per, Slot: slotOf(now, per), N: w.N, In: map[int64]int{}}
	for slot, n := range w.In {
		to := min(slotOf(begins(slot+1, w.Per), per), is.Slot)
		if is.Slot-to > slotsPerWindow {
			is.N -= n
			continue
		}
		is.In[to] += n
	}
	return is
}

// past are the slots that no longer count once slot is the newest, and how many starts they have.
func (w Window) past(slot int64) (gone map[int64]int, n int) {
	gone = map[int64]int{}
	for s, starts := range w.In {
		if s < slot-slotsPerWindow {
			gone[s] = starts
			n += starts
		}
	}
	return gone, n
}

// Left is how many may start now.
func (w Window) Left(r Rate, now time.Time) int {
	w = w.of(r.Per, now)
	_, gone := w.past(max(w.Slot, slotOf(now, r.Per)))
	return max(r.Count-(w.N-gone), 0)
}

// Started is how many starts count now.
func (w Window) Started(r Rate, now time.Time) int { return r.Count - w.Left(r, now) }

// Next is when the next may start: now, or when the oldest that count no longer do.
func (w Window) Next(r Rate, now time.Time) time.Time {
	if w.Left(r, now) > 0 {
		return now
	}
	w = w.of(r.Per, now)
	newest := max(w.Slot, slotOf(now, r.Per))
	for slot := newest - slotsPerWindow; slot <= newest; slot++ {
		if _, gone := w.past(slot + slotsPerWindow + 1); w.N-gone < r.Count {
			return begins(slot+slotsPerWindow+1, r.Per)
		}
	}
	return begins(newest+slotsPerWindow+1, r.Per)
}

// Draw counts a start now, in the window as it was read, under a rate. Refused, the window has changed, or is full.
func (k Key) Draw(w Window, r Rate, now time.Time) item.Write {
	ref := k.ref("rate")
	is := w.of(r.Per, now)
	slot := max(is.Slot, slotOf(now, r.Per))
	gone, starts := is.past(slot)
	write := item.Write{
		Ref: ref, Name: WriteDraw, Set: map[string]any{contract.AttrExpiresAt: now.Add(r.Per + kept).Unix()},
		Add: map[string]int64{},
	}
	if w.Per != r.Per { // the slots are of another length, or there are none: all of them are written anew
		return k.rewritten(write, w, is, slot, gone, starts, r)
	}
	as := item.All{
		{Attr: "per_ms", Op: item.Eq, Value: r.Per.Milliseconds()}, {Attr: "slot", Op: item.Eq, Value: w.Slot},
		{Attr: "n", Op: item.Lt, Value: int64(r.Count + starts)},
	}
	if slot != w.Slot {
		write.Set["slot"] = slot
		for s, n := range gone {
			write.Set[slotName(s)] = nil
			as = append(as, item.Cond{Attr: slotName(s), Op: item.Eq, Value: int64(n)})
		}
	}
	write.Add["n"] = int64(1 - starts)
	if _, cleared := write.Set[slotName(slot)]; cleared {
		write.Set[slotName(slot)] = int64(1)
	} else {
		write.Add[slotName(slot)] = 1
	}
	write.When = []item.All{as}
	return write
}

// rewritten is the draw that writes each slot of the window anew.
func (k Key) rewritten(
	write item.Write, was, is Window, slot int64, gone map[int64]int, starts int, r Rate,
) item.Write {
	in := maps.Clone(is.In)
	maps.DeleteFunc(in, func(s int64, _ int) bool { return gone[s] != 0 })
	in[slot]++
	for s := range int64(slotsPerWindow + 1) {
		write.Set["s"+strconv.FormatInt(s, 10)] = nil
	}
	for s, n := range in {
		write.Set[slotName(s)] = int64(n)
	}
	write.Set["per_ms"], write.Set["slot"] = r.Per.Milliseconds(), slot
	n := int64(is.N - starts + 1)
	write.Set["n"] = n
	full := item.Cond{Attr: "n", Op: item.Missing}
	if n > int64(r.Count) {
		write.When = []item.All{{full, {Attr: "n", Op: item.Exists}}} // never
		return write
	}
	if was.Per == 0 {
		write.When = []item.All{{full}}
		return write
	}
	write.When = []item.All{{
		{Attr: "per_ms", Op: item.Eq, Value: was.Per.Milliseconds()}, {Attr: "slot", Op: item.Eq, Value: was.Slot},
		{Attr: "n", Op: item.Eq, Value: int64(was.N)},
	}}
	return write
}

// GiveBack uncounts a start that was counted at that time and did not happen. Refused, it no longer counts.
func (k Key) GiveBack(at time.Time, r Rate) item.Write {
	slot := slotOf(at, r.Per)
	name := slotName(slot)
	return item.Write{
		Ref: k.ref("rate"), Name: WriteGiveBack, Add: map[string]int64{"n": -1, name: -1},
		When: []item.All{{
			{Attr: "per_ms", Op: item.Eq, Value: r.Per.Milliseconds()}, {Attr: name, Op: item.Ge, Value: int64(1)},
			{Attr: "slot", Op: item.Ge, Value: slot}, {Attr: "slot", Op: item.Le, Value: slot + slotsPerWindow},
		}},
	}
}

// WindowRef is where the starts of the key are counted.
func (k Key) WindowRef() item.Ref { return k.ref("rate") }
