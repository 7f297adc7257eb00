package stats

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// SpanOf is how much of a series one stored item has. Of a task that runs each minute it stays under a write unit.
const SpanOf = 5 * time.Minute

// Kept is how long counts are kept: the longest range that can be read, and a day for its alignment.
const Kept = (30 + 1) * 24 * time.Hour

// WriteAdd is the name of the write that adds to a span.
const WriteAdd = "stats.add"

// Partition is where the spans of a series are, in the order of time.
func Partition(s Series) string { return contract.StatsPartitions + string(s.Tenant) + "#" + s.Task }

// SpanKey is the sort key of the span that a time lies in.
func SpanKey(at time.Time) string { return fmt.Sprintf("%012d", at.Truncate(SpanOf).Unix()) }

// counters are the attributes of a minute, each behind the number of the minute in its span.
var counters = []struct {
	name string
	of   func(*Counts) *int64
}{
	{"c", func(c *Counts) *int64 { return &c.Created }},
	{"s", func(c *Counts) *int64 { return &c.Started }},
	{"o", func(c *Counts) *int64 { return &c.Succeeded }},
	{"f", func(c *Counts) *int64 { return &c.FailedAttempts }},
	{"d", func(c *Counts) *int64 { return &c.Dead }},
	{"x", func(c *Counts) *int64 { return &c.Expired }},
	{"k", func(c *Counts) *int64 { return &c.Skipped }},
}

// lateness is the attribute of a bucket of a minute, behind the number of the minute and before that of the bucket.
const lateness = "l"

// Addition adds to a span of a series.
type Addition struct {
	Series Series
	Write  item.Write // it has no condition
}

// Minutes returns what is added.
func (a Addition) Minutes() (map[time.Time]Counts, error) {
	return Minutes(a.Write.Applied(nil, contract.AttrPK, contract.AttrSK))
}

// Additions returns what adds the sum to the stored spans.
func (s Sum) Additions() (all []Addition) {
	for series, minutes := range s {
		for at, adds := range spans(minutes) {
			for _, w := range addsTo(series, at, adds) {
				all = append(all, Addition{series, w})
			}
		}
	}
	return all
}

// spans returns what counts of minutes add to the attributes of each span.
func spans(minutes map[time.Time]Counts) map[time.Time]map[string]int64 {
	all := map[time.Time]map[string]int64{}
	for minute, c := range minutes {
		at := minute.Truncate(SpanOf)
		if all[at] == nil {
			all[at] = map[string]int64{}
		}
		c.encode(all[at], int(minute.Sub(at)/time.Minute))
	}
	return all
}

func (c Counts) encode(to map[string]int64, minute int) {
	prefix := strconv.Itoa(minute)
	for _, counter := range counters {
		if n := *counter.of(&c); n != 0 {
			to[prefix+counter.name] = n
		}
	}
	for bucket, n := range c.Lateness {
		to[prefix+lateness+strconv.Itoa(bucket)] = n
	}
}

func addsTo(series Series, at time.Time, adds map[string]int64) []item.Write {
	return item.Write{
		Ref:  item.Ref{Table: contract.Tasks, PK: Partition(series), SK: SpanKey(at)},
		Name: WriteAdd, Set: map[string]any{contract.AttrExpiresAt: at.Add(Kept).Unix()},
	}.Adding(adds)
}

// Minutes reads what an item has of each minute. An attribute that it does not know counts nothing.
func Minutes(i item.Item) (map[time.Time]Counts, error) {
	unix, err := strconv.ParseInt(i.Str(contract.AttrSK), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading a span of counts: %w", err)
	}
	start := time.Unix(unix, 0).UTC()
	minutes := map[time.Time]Counts{}
	for name, v := range i {
		n, isNumber := v.(int64)
		if !isNumber || len(name) < 2 || name[0] < '0' || name[0] > '4' {
			continue
		}
		minute := start.Add(time.Duration(name[0]-'0') * time.Minute)
		c := minutes[minute]
		c.decode(name[1:], n)
		minutes[minute] = c
	}
	return minutes, nil
}

func (c *Counts) decode(name string, n int64) {
	if text, ok := strings.CutPrefix(name, lateness); ok {
		if bucket, err := strconv.Atoi(text); err == nil && bucket >= 0 && bucket < buckets {
			c.Lateness.add(Histogram{bucket: n})
		}
		return
	}
	for _, counter := range counters {
		if counter.name == name {
			*counter.of(c) += n
		}
	}
}
