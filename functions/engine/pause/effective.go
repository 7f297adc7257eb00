package pause

import "time"

// EffectiveAt returns from when a pause that was just written holds: from the time stored with it, unless the write
// came so long after that time was chosen that a worker may still act on what it read before the write.
func EffectiveAt(stored, now time.Time) time.Time {
	if read := now.Add(FactAge); read.After(stored) {
		return read
	}
	return stored
}
