package stats

import (
	"maps"
	"math"
	"slices"
)

// Histogram counts values of milliseconds by bucket. Bucket 0 holds 0, and each further one the values up to step times
// those of the one before, so what a percentile says is at most 5% off.
type Histogram map[int]int64

const (
	step    = 1.1
	buckets = 256 // the last one holds all values above about ten months
)

// bucketOf returns the bucket of a value; a negative one counts as 0.
func bucketOf(ms int64) int {
	if ms < 1 {
		return 0
	}
	return min(1+int(math.Log(float64(ms))/math.Log(step)), buckets-1)
}

// valueOf returns the value that a bucket is shown as.
func valueOf(bucket int) int64 {
	if bucket == 0 {
		return 0
	}
	return int64(math.Round(math.Pow(step, float64(bucket-1)+0.5)))
}

// add counts the values of another histogram as well.
func (h *Histogram) add(more Histogram) {
	if *h == nil && len(more) > 0 {
		*h = make(Histogram, len(more))
	}
	for bucket, n := range more {
		(*h)[bucket] += n
	}
}

// Percentile returns the value that the share p of all values does not exceed; false if there are none.
func (h Histogram) Percentile(p float64) (ms int64, ok bool) {
	var all, below int64
	for _, n := range h {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	wanted := int64(math.Ceil(p * float64(all)))
	for _, bucket := range slices.Sorted(maps.Keys(h)) {
		if below += h[bucket]; below >= wanted {
			return valueOf(bucket), true
		}
	}
	return 0, false
}
