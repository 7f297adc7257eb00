package horizon

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
)

// Lane is the way by which a firing reaches a worker.
type Lane string

// The lanes, nearest first.
const (
	Now    Lane = "now"    // the process that writes the row sends the firing
	Direct Lane = "direct" // the stream consumer sends it with a delay
	Timer  Lane = "timer"  // the timer of its slice, then dispatch
	Store  Lane = "store"  // only the table holds it, until the promoter comes
)

// LaneOf returns the lane of a wake-up by its due time.
func LaneOf(now, due time.Time) Lane {
	switch ahead := due.Sub(now); {
	case ahead <= contract.NowLane:
		return Now
	case ahead <= contract.DirectLane:
		return Direct
	case ahead <= contract.Horizon:
		return Timer
	default:
		return Store
	}
}

// Near reports whether a row with that due time must pass the stream consumer. It reaches a little
// beyond the horizon, because the promoter may have passed that slice already.
func Near(now, due time.Time) bool {
	return due.Sub(now) <= contract.Horizon+contract.NearMargin
}

// Delay returns how long the queue keeps a firing: whole seconds, never negative, never over the
// queue's limit, and a little less than what is left, so that the worker waits for the rest.
func Delay(now, due time.Time) time.Duration {
	d := due.Sub(now).Truncate(time.Second) - contract.DelayLead
	return min(max(d, 0), contract.MaxDelay)
}

// Slice is one minute of wake-ups in one shard of the due index.
type Slice struct {
	Minute time.Time // UTC, whole minutes
	Shard  int
}

const minuteLayout = "2006-01-02T15:04"

// SliceOf returns the slice that holds a wake-up.
func SliceOf(wakeAt time.Time, shard int) Slice {
	return Slice{Minute: wakeAt.UTC().Truncate(time.Minute), Shard: shard}
}

// String returns the slice's key in the index: "2027-03-28T00:05#17".
func (s Slice) String() string {
	return s.Minute.UTC().Format(minuteLayout) + "#" + strconv.Itoa(s.Shard)
}

// ParseSlice parses a key of String.
func ParseSlice(key string) (Slice, error) {
	minute, shard, ok := strings.Cut(key, "#")
	at, err := time.Parse(minuteLayout, minute)
	n, err2 := strconv.Atoi(shard)
	if !ok || err != nil || err2 != nil || n < 0 {
		return Slice{}, fmt.Errorf("slice %q is not <minute>#<shard>", key)
	}
	return Slice{Minute: at, Shard: n}, nil
}

// Slices returns the slices of one shard from the minute of from up to and including the minute of
// to; none if to is earlier.
func Slices(from, to time.Time, shard int) []Slice {
	var slices []Slice
	for m := from.UTC().Truncate(time.Minute); !m.After(to); m = m.Add(time.Minute) {
		slices = append(slices, Slice{Minute: m, Shard: shard})
	}
	return slices
}

// ShardOf distributes ids evenly over n shards; the same id always gets the same one.
func ShardOf(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id)) // never fails
	return int(h.Sum32() % uint32(n))
}

// Parking returns the key in the due index of what a pause holds: one partition of a tenant's
// parked jobs. It is no minute, so promoter and sweeper skip it, and lifting the pause finds
// everything there.
func Parking(tenant string, shard int) string {
	return "parked#" + tenant + "#" + strconv.Itoa(shard%contract.ParkShards)
}

// Parkings returns all parking places of a tenant.
func Parkings(tenant string) []string {
	parkings := make([]string, contract.ParkShards)
	for i := range parkings {
		parkings[i] = Parking(tenant, i)
	}
	return parkings
}

// Line returns the key in the due index of a schedule's jobs that wait behind a run, oldest first.
func Line(tenant, schedule string) string { return "line#" + tenant + "#" + schedule }

// LimitQueue returns the key in the due index of the jobs of a rank that wait for a permit of a limit's key, oldest
// first. Rank 0 is served first.
func LimitQueue(tenant, limit, key string, rank int) string {
	return "limit#" + tenant + "#" + limit + "#" + strconv.Itoa(rank) + "#" + key
}
