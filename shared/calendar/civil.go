package calendar

import "math/bits"

// Wall times count seconds since 1970-01-01T00:00:00 on the local clock, and days count whole days
// since then: plain integers without zones or clock changes.

const day = 86400

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// dayNumber returns the day of a date in the proleptic Gregorian calendar.
func dayNumber(year, month, dom int) int64 {
	y := int64(year)
	if month <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	doy := (153*int64((month+9)%12)+2)/5 + int64(dom) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// civil returns the date of a day; it reverses dayNumber.
func civil(d int64) (year, month, dom int) {
	d += 719468
	era := floorDiv(d, 146097)
	doe := d - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	dom = int(doy - (153*mp+2)/5 + 1)
	month = int(mp) + 3
	year = int(yoe + era*400)
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, dom
}

// weekday returns the weekday of a day, 0 for Sunday.
func weekday(d int64) int { return int(((d+4)%7 + 7) % 7) }

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func monthLen(year, month int) int {
	if month == 2 {
		if leap(year) {
			return 29
		}
		return 28
	}
	return 30 + (0b1010110101010>>month)&1
}

func yearLen(year int) int {
	if leap(year) {
		return 366
	}
	return 365
}

// timeOfDay is the set of seconds of a day that match in all three parts.
type timeOfDay struct{ second, minute, hour uint64 }

// from returns the first matching second of the day at or after s; false if there is none.
func (t timeOfDay) from(s int) (int, bool) {
	h, m, sec := s/3600, s/60%60, s%60
	if t.hour>>h&1 == 1 {
		if t.minute>>m&1 == 1 {
			if rest := t.second >> sec; rest != 0 {
				return s + bits.TrailingZeros64(rest), true
			}
		}
		if rest := t.minute >> (m + 1); rest != 0 {
			m += 1 + bits.TrailingZeros64(rest)
			return h*3600 + m*60 + bits.TrailingZeros64(t.second), true
		}
	}
	rest := t.hour >> (h + 1)
	if rest == 0 {
		return 0, false
	}
	h += 1 + bits.TrailingZeros64(rest)
	return h*3600 + bits.TrailingZeros64(t.minute)*60 + bits.TrailingZeros64(t.second), true
}

func (t timeOfDay) first() int {
	return bits.TrailingZeros64(t.hour)*3600 + bits.TrailingZeros64(t.minute)*60 + bits.TrailingZeros64(t.second)
}

// count returns how many seconds of a day match.
func (t timeOfDay) count() int {
	return bits.OnesCount64(t.hour) * bits.OnesCount64(t.minute) * bits.OnesCount64(t.second)
}

// nth returns the k-th matching second of the day, counted from 0.
func (t timeOfDay) nth(k int) int {
	seconds, minutes := bits.OnesCount64(t.second), bits.OnesCount64(t.minute)
	return nthBit(t.hour, k/(minutes*seconds))*3600 + nthBit(t.minute, k/seconds%minutes)*60 +
		nthBit(t.second, k%seconds)
}

func nthBit(mask uint64, k int) int {
	for ; k > 0; k-- {
		mask &= mask - 1
	}
	return bits.TrailingZeros64(mask)
}

// closest returns the smallest distance in seconds between two matching times, including the step
// into the next day.
func (t timeOfDay) closest() int {
	first := t.first()
	last, best := first, day
	for {
		s, ok := t.from(last + 1)
		if !ok || last+1 >= day {
			break
		}
		best = min(best, s-last)
		last = s
		if best == 1 {
			return 1
		}
	}
	return min(best, day-last+first)
}

// floorMod returns the remainder of floorDiv: at least 0 and below b.
func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
