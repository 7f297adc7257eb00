package calendar

import "math/bits"

// dayRule is the day part of a cron expression as bit masks: the matching days and months.
type dayRule struct {
	months   uint32 // bits 1 to 12
	dom      uint32 // bits 1 to 31
	weekdays uint32 // bits 0 (Sunday) to 6
	either   bool   // both fields restrict, and one match is enough

	fromEnd        uint32    // bit n: n days before the last day of the month
	nearest        uint32    // bit n: the working day nearest to day n
	nearestFromEnd uint32    // bit n: the working day nearest to n days before the last day
	nth            [7]uint32 // per weekday, bits 1 to 5: the n-th; bit 0: the last
	special        bool      // one of the four above is set
}

// dom and weekdays of a rule that names no days.
const (
	allDates    = 1<<32 - 2
	allWeekdays = 1<<7 - 1
)

// days returns the matching days of a month as bits 1 to 31.
func (r *dayRule) days(year, month int, first int64) uint32 {
	length := monthLen(year, month)
	all := uint32(1)<<(length+1) - 2
	begins := weekday(first)
	byWeekday := everyWeek(r.weekdays, begins) & all
	byDate := r.dom & all
	if r.special {
		byDate |= r.specialDates(length, begins)
		byWeekday |= r.specialWeekdays(length, begins)
	}
	if r.either {
		return byDate | byWeekday
	}
	return byDate & byWeekday
}

// everyWeek returns the days of a month, bits 1 to 31, that fall on weekdays, bits 0 (Sunday) to 6.
// The month begins on weekday begins.
func everyWeek(weekdays uint32, begins int) uint32 {
	week := uint64(weekdays>>begins|weekdays<<(7-begins)) & 0x7f
	return uint32((week | week<<7 | week<<14 | week<<21 | week<<28) << 1)
}

func (r *dayRule) specialDates(length, begins int) (set uint32) {
	for m := r.fromEnd; m != 0; m &= m - 1 {
		if d := length - bits.TrailingZeros32(m); d > 0 {
			set |= 1 << d
		}
	}
	for m := r.nearest; m != 0; m &= m - 1 {
		if d := bits.TrailingZeros32(m); d <= length {
			set |= 1 << nearestWorkday(d, length, begins)
		}
	}
	for m := r.nearestFromEnd; m != 0; m &= m - 1 {
		if d := length - bits.TrailingZeros32(m); d > 0 {
			set |= 1 << nearestWorkday(d, length, begins)
		}
	}
	return set
}

// nearestWorkday moves a Saturday to the Friday before and a Sunday to the Monday after, or the
// other way where that would leave the month.
func nearestWorkday(d, length, begins int) int {
	switch (begins + d - 1) % 7 {
	case 6:
		if d == 1 {
			return 3
		}
		return d - 1
	case 0:
		if d == length {
			return d - 2
		}
		return d + 1
	}
	return d
}

func (r *dayRule) specialWeekdays(length, begins int) (set uint32) {
	for wd, which := range r.nth {
		first := (wd-begins+7)%7 + 1
		for n := 1; n <= 5; n++ {
			if d := first + 7*(n-1); which>>n&1 == 1 && d <= length {
				set |= 1 << d
			}
		}
		if which&1 == 1 {
			set |= 1 << (first + (length-first)/7*7)
		}
	}
	return set
}

// next returns the first matching day from d up to and including until.
func (r *dayRule) next(d, until int64) (int64, bool) {
	year, month, dom := civil(d)
	first := d - int64(dom) + 1
	for first <= until {
		if r.months>>month&1 == 1 {
			if set := r.days(year, month, first) >> dom << dom; set != 0 {
				found := first + int64(bits.TrailingZeros32(set)) - 1
				return found, found <= until
			}
		}
		first += int64(monthLen(year, month))
		dom = 1
		if month++; month > 12 {
			month = 1
			year++
		}
	}
	return 0, false
}

// cronRule is a cron expression as wall times.
type cronRule struct {
	days dayRule
	time timeOfDay
}

func (r *cronRule) next(from, until int64, _ *int) (int64, bool) {
	d := floorDiv(from, day)
	last := floorDiv(until, day)
	found, ok := r.days.next(d, last)
	if !ok {
		return 0, false
	}
	if found == d {
		if s, ok := r.time.from(int(from - d*day)); ok {
			w := d*day + int64(s)
			return w, w <= until
		}
		if found, ok = r.days.next(d+1, last); !ok {
			return 0, false
		}
	}
	w := found*day + int64(r.time.first())
	return w, w <= until
}
