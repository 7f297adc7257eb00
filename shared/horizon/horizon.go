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

// ParseParking returns the tenant of a parking place; false if key is none.
func ParseParking(key string) (tenant string, ok bool) {
	rest, isParking := strings.CutPrefix(key, "parked#")
	tenant, shard, ok := strings.Cut(rest, "#")
	_, err := strconv.Atoi(shard)
	return tenant, isParking && ok && tenant != "" && err == nil
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

// ParseLine returns the tenant and schedule of a line; false if key is none.
func ParseLine(key string) (tenant, schedule string, ok bool) {
	rest, isLine := strings.CutPrefix(key, "line#")
	tenant, schedule, ok = strings.Cut(rest, "#")
	return tenant, schedule, isLine && ok && tenant != "" && schedule != ""
}

// Forgetting is no key of an index: a dispatch message with it asks to delete what belongs to a row
// that the table has deleted. blob is the version of its payload in the bucket, 0 for none there, and result the
// reference of its result there, "" for none.
func Forgetting(tenant, id string, blob int64, result string) string {
	key := "forget#" + tenant + "#" + id + "#" + strconv.FormatInt(blob, 10)
	if result != "" {
		key += "#" + result
	}
	return key
}

// ParseForgetting returns what the key asks to delete; false if it is no such key.
func ParseForgetting(key string) (tenant, id string, blob int64, result string, ok bool) {
	rest, isForgetting := strings.CutPrefix(key, "forget#")
	parts := strings.Split(rest, "#")
	if !isForgetting || len(parts) < 3 || len(parts) > 4 || parts[0] == "" {
		return "", "", 0, "", false
	}
	if len(parts) == 4 {
		result = parts[3]
	}
	blob, err := strconv.ParseInt(parts[2], 10, 64)
	return parts[0], parts[1], blob, result, err == nil && blob >= 0
}

// Reconciling is no key of an index: a dispatch message with it asks for the run to be reconciled from its rows.
func Reconciling(tenant, run string) string { return "reconcile#" + tenant + "#" + run }

// ParseReconciling returns the tenant and the run to reconcile; false if key is no such key.
func ParseReconciling(key string) (tenant, run string, ok bool) {
	rest, isReconciling := strings.CutPrefix(key, "reconcile#")
	tenant, run, ok = strings.Cut(rest, "#")
	return tenant, run, isReconciling && ok && tenant != "" && run != ""
}

// Promotion is no key of an index: a dispatch message with it asks for the promotion of one
// schedule.
func Promotion(tenant, schedule string) string { return "promote#" + tenant + "#" + schedule }

// ParsePromotion returns the tenant and schedule to promote; false if key is no such key.
func ParsePromotion(key string) (tenant, schedule string, ok bool) {
	rest, isPromotion := strings.CutPrefix(key, "promote#")
	tenant, schedule, ok = strings.Cut(rest, "#")
	return tenant, schedule, isPromotion && ok && tenant != "" && schedule != ""
}
