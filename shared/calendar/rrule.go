package calendar

import (
	"math/bits"
	"slices"
)

type frequency uint8

const (
	yearly frequency = iota
	monthly
	weekly
	daily
	hourly
	minutely
	secondly
)

// recurrence is an RRULE as wall times. It is searched day by day, with whole months skipped at
// once, so a search can begin anywhere. RRULE libraries walk from the first occurrence, which gets
// slower with time and never ends for a rule that never matches.
type recurrence struct {
	freq     frequency
	interval int64
	begin    int64 // intervals count from here; there is nothing earlier
	anchor   int64 // below an hour intervals count from here instead: begin in the current offset
	end      int64 // the last possible wall time
	count    int   // number of runs; 0: no bound
	wkst     int

	months    uint32 // bits 1 to 12; 0 in any of these sets means no restriction
	monthDays uint32 // bits 1 to 31
	fromEnd   uint32 // bit n: the n-th last day of the month
	yearDays  []int
	weekNos   []int
	weekdays  uint32 // bits 0 (Sunday) to 6
	nth       []nthWeekday
	nthOfYear bool // counted in the year rather than in the month
	time      timeOfDay
	positions []int
	picked    []int64 // below daily: the seconds of each hour, minute or second that positions select, sorted
}

type nthWeekday struct{ weekday, n int }

func (r *recurrence) next(from, until int64, steps *int) (int64, bool) {
	from, until = max(from, r.begin), min(until, r.end)
	if r.freq >= hourly {
		return r.nextBelowDaily(from, until, steps)
	}
	for d := floorDiv(from, day); d*day <= until; {
		if aligned := r.aligned(d); aligned > d {
			d = aligned
			continue
		}
		if len(r.positions) > 0 {
			first, last := r.period(d)
			if w, ok := r.nextPosition(first, last, from); ok {
				return w, w <= until
			}
			d = last + 1
			continue
		}
		year, month, dom := civil(d)
		if ahead := r.toCandidate(d, year, month, dom); ahead > 0 {
			d += ahead
			continue
		}
		if r.on(d, year, month, dom) {
			if s, ok := r.time.from(int(max(0, from-d*day))); ok {
				w := d*day + int64(s)
				return w, w <= until
			}
		}
		d++
	}
	return 0, false
}

// toCandidate returns how many days after d the next possible day is, by month, days and weekdays,
// or the next month.
func (r *recurrence) toCandidate(d int64, year, month, dom int) int64 {
	length := monthLen(year, month)
	set := uint32(1)<<(length+1) - 2
	if r.months != 0 && r.months>>month&1 == 0 {
		set = 0
	}
	if r.monthDays|r.fromEnd != 0 {
		// Mirrors bit n of fromEnd into bit length+1-n.
		set &= r.monthDays | uint32(bits.Reverse64(uint64(r.fromEnd))>>(62-length))
	}
	if r.weekdays != 0 && len(r.nth) == 0 {
		set &= everyWeek(r.weekdays, weekday(d-int64(dom)+1))
	}
	if set >>= dom; set != 0 {
		return int64(bits.TrailingZeros32(set))
	}
	return int64(length - dom + 1)
}

// on reports whether a day matches every restriction.
func (r *recurrence) on(d int64, year, month, dom int) bool {
	if r.months != 0 && r.months>>month&1 == 0 {
		return false
	}
	if r.monthDays|r.fromEnd != 0 && r.monthDays>>dom&1 == 0 && r.fromEnd>>(monthLen(year, month)-dom+1)&1 == 0 {
		return false
	}
	if r.weekdays != 0 || len(r.nth) > 0 {
		if r.weekdays>>weekday(d)&1 == 0 && !r.onNth(d, year, month, dom) {
			return false
		}
	}
	if len(r.yearDays) > 0 {
		yd := int(d-dayNumber(year, 1, 1)) + 1
		if !slices.Contains(r.yearDays, yd) && !slices.Contains(r.yearDays, yd-yearLen(year)-1) {
			return false
		}
	}
	if len(r.weekNos) > 0 {
		n, of := r.week(d)
		if !slices.Contains(r.weekNos, n) && !slices.Contains(r.weekNos, n-of-1) {
			return false
		}
	}
	return true
}

func (r *recurrence) onNth(d int64, year, month, dom int) bool {
	wd := weekday(d)
	pos, length := dom, monthLen(year, month)
	if r.nthOfYear {
		pos, length = int(d-dayNumber(year, 1, 1))+1, yearLen(year)
	}
	for _, n := range r.nth {
		if n.weekday == wd && (n.n == (pos-1)/7+1 || -n.n == (length-pos)/7+1) {
			return true
		}
	}
	return false
}

// week returns the number of d's week and how many weeks its year has. A week belongs to the year
// with most of its days.
func (r *recurrence) week(d int64) (n, of int) {
	middle := d - int64((weekday(d)-r.wkst+7)%7) + 3
	year, _, _ := civil(middle)
	yd := int(middle - dayNumber(year, 1, 1))
	return yd/7 + 1, (yearLen(year)-1-yd%7)/7 + 1
}

// period returns the first and the last day of the year, month, week or day that contains d.
func (r *recurrence) period(d int64) (first, last int64) {
	year, month, dom := civil(d)
	switch r.freq {
	case yearly:
		first = dayNumber(year, 1, 1)
		return first, first + int64(yearLen(year)) - 1
	case monthly:
		first = d - int64(dom) + 1
		return first, first + int64(monthLen(year, month)) - 1
	case weekly:
		first = d - int64((weekday(d)-r.wkst+7)%7)
		return first, first + 6
	}
	return d, d
}

// aligned returns d if the interval selects its period, otherwise the first day of the next
// selected period.
func (r *recurrence) aligned(d int64) int64 {
	if r.interval == 1 {
		return d
	}
	begin := floorDiv(r.begin, day)
	switch r.freq {
	case yearly, monthly:
		year, month, _ := civil(d)
		beginYear, beginMonth, _ := civil(begin)
		if r.freq == yearly {
			if off := int64(year-beginYear) % r.interval; off != 0 {
				return dayNumber(year+int(r.interval-off), 1, 1)
			}
			return d
		}
		at := int64(year*12 + month - 1)
		if off := (at - int64(beginYear*12+beginMonth-1)) % r.interval; off != 0 {
			at += r.interval - off
			return dayNumber(int(at/12), int(at%12)+1, 1)
		}
		return d
	}
	unit := int64(1)
	if r.freq == weekly {
		unit = 7
		begin, _ = r.period(begin)
	}
	at := floorDiv(d-begin, unit)
	if off := at % r.interval; off != 0 {
		return begin + (at+r.interval-off)*unit
	}
	return d
}

// nextPosition is next within one period of a rule with BYSETPOS.
func (r *recurrence) nextPosition(first, last, from int64) (int64, bool) {
	var buffer [366]int64
	days := buffer[:0]
	for d := first; d <= last; {
		year, month, dom := civil(d)
		if ahead := r.toCandidate(d, year, month, dom); ahead > 0 {
			d += ahead
			continue
		}
		if r.on(d, year, month, dom) {
			days = append(days, d)
		}
		d++
	}
	times := r.time.count()
	best, found := int64(0), false
	for _, p := range r.positions {
		if p > 0 {
			p--
		} else {
			p += len(days) * times
		}
		if p < 0 || p >= len(days)*times {
			continue
		}
		w := days[p/times]*day + int64(r.time.nth(p%times))
		if w >= from && (!found || w < best) {
			best, found = w, true
		}
	}
	return best, found
}

// elapsed reports whether the rule's intervals are elapsed time, which clock changes do not affect:
// every seven minutes are seven minutes.
func (r *recurrence) elapsed() bool { return r.freq >= minutely }

// under returns the rule as wall times of a zone while it has that offset. began is the instant at
// which the rule begins.
func (r *recurrence) under(offset, began int64) *recurrence {
	shifted := *r
	shifted.anchor, shifted.begin = began+offset, began+offset
	return &shifted
}

func (r *recurrence) nextBelowDaily(from, until int64, steps *int) (int64, bool) {
	unit := [...]int64{hourly: 3600, minutely: 60, secondly: 1}[r.freq]
	begin := floorDiv(r.anchor, unit)
	for w := from; w <= until && *steps > 0; *steps-- {
		d := floorDiv(w, day)
		year, month, dom := civil(d)
		if r.months != 0 && r.months>>month&1 == 0 {
			w = (d + int64(monthLen(year, month)-dom+1)) * day
			continue
		}
		s, ok := r.time.from(int(w - d*day))
		if !ok || !r.on(d, year, month, dom) {
			w = (d + 1) * day
			continue
		}
		w = d*day + int64(s)
		at := floorDiv(w, unit)
		off := floorMod(at-begin, r.interval)
		switch {
		case off != 0:
			w = (at + r.interval - off) * unit
		case len(r.positions) == 0:
			return w, w <= until
		default:
			// The first time of the period has matched; one that the positions select may come later.
			i, _ := slices.BinarySearch(r.picked, w-at*unit)
			if i < len(r.picked) {
				w = at*unit + r.picked[i]
				return w, w <= until
			}
			w = (at + 1) * unit
		}
	}
	return 0, false
}

// pick computes the times that the positions select of each period below a day. They are the same in each.
func (r *recurrence) pick() {
	var all []int64
	minutes, seconds := r.time.minute, r.time.second
	if r.freq >= minutely {
		minutes = 1
	}
	if r.freq == secondly {
		seconds = 1
	}
	for m := minutes; m != 0; m &= m - 1 {
		for s := seconds; s != 0; s &= s - 1 {
			all = append(all, int64(bits.TrailingZeros64(m)*60+bits.TrailingZeros64(s)))
		}
	}
	for _, p := range r.positions {
		if p < 0 {
			p += len(all) + 1
		}
		if p >= 1 && p <= len(all) {
			r.picked = append(r.picked, all[p-1])
		}
	}
	slices.Sort(r.picked)
	r.picked = slices.Compact(r.picked)
}

// often reports whether the rule may match more than most times a day.
func (r *recurrence) often(most int) bool {
	switch r.freq {
	case hourly:
		each := bits.OnesCount64(r.time.minute) * bits.OnesCount64(r.time.second)
		if len(r.positions) > 0 {
			each = len(r.picked)
		}
		return min(bits.OnesCount64(r.time.hour), (23+int(r.interval))/int(r.interval))*each > most
	case minutely, secondly:
		return true
	}
	return r.time.count() > most
}
