package stats

import "time"

// Steps are the lengths of the steps in which counts are shown.
var Steps = []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour}

// Bounds of what one request reads.
const (
	MaxSteps = 1500
	MaxRange = 30 * 24 * time.Hour
)

// Range is the steps of a request, aligned outwards: from is in the first step, and what comes before to in the last.
type Range struct {
	From time.Time
	Step time.Duration
	N    int
}

// Aligned returns the steps that cover from ≤ t < to.
func Aligned(from, to time.Time, step time.Duration) Range {
	start := from.UTC().Truncate(step)
	return Range{start, step, int((to.Sub(start) + step - 1) / step)}
}

// End is where the last step ends.
func (r Range) End() time.Time { return r.From.Add(time.Duration(r.N) * r.Step) }

// Table adds up counts by the steps of a range.
type Table struct {
	Range
	Counts []Counts
}

// NewTable returns an empty table.
func NewTable(r Range) *Table { return &Table{r, make([]Counts, r.N)} }

// Add adds counts of a minute, if it is in the range.
func (t *Table) Add(minute time.Time, c Counts) {
	if n := int(minute.Sub(t.From) / t.Step); !minute.Before(t.From) && n < t.N {
		t.Counts[n].Add(c)
	}
}
