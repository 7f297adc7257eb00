package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// By is what the use of jobs is shown by.
type By string

// The ways to show it; a tag's begins with TagPrefix.
const (
	ByTask     By = "task"
	BySchedule By = "schedule"
	ByDag      By = "dag"
	TagPrefix     = "tag."
)

// Bounds of what is kept.
const (
	MaxTags   = contract.MaxUsageTags
	MaxValues = 1000 // of a group; the use of further ones is that of Other
	// MaxTagBytes is how many bytes the values of a tag have together, in a group. Longer values make larger items, and
	// each write of an item is paid by its size.
	MaxTagBytes = 10 << 10
	// Kept is how long the use of a day is kept.
	Kept = 400 * 24 * time.Hour
	// MaxDays is how many days one request reads.
	MaxDays = 31
)

// Other is the value of all beyond MaxValues.
const Other = "other"

// WriteAdd is the name of the write that adds to an item.
const WriteAdd = "usage.add"

// parts is the number of items that the values of a group are distributed to: an item of a thousand values would cost
// dozens of write units for each job, and an item for each value dozens for each flush.
const parts = 32

// Group is the values of one day of a tenant by something.
type Group struct {
	Tenant tenant.ID
	By     By
	Day    time.Time // its start, in UTC
}

// Takes reports whether a group may have so many values with so many bytes.
func (g Group) Takes(values, bytes int) bool {
	return values <= MaxValues && (bytes <= MaxTagBytes || !strings.HasPrefix(string(g.By), TagPrefix))
}

// Sum is what has been counted, by group and value. The zero Sum is empty.
type Sum map[Group]map[string]Use

// DayOf returns the day of a time.
func DayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// Add adds the use of a value.
func (s *Sum) Add(g Group, value string, u Use) {
	if *s == nil {
		*s = Sum{}
	}
	values := (*s)[g]
	if values == nil {
		values = map[string]Use{}
		(*s)[g] = values
	}
	all := values[value]
	all.Add(u)
	values[value] = all
}

// AddSum adds all of another sum.
func (s *Sum) AddSum(more Sum) {
	for g, values := range more {
		for value, u := range values {
			s.Add(g, value, u)
		}
	}
}

// Len returns how many values it has.
func (s Sum) Len() (n int) {
	for _, values := range s {
		n += len(values)
	}
	return n
}

// Partition is where the items of a tenant are, in the order of days.
func Partition(t tenant.ID, by By) string {
	return contract.UsagePartitions + string(t) + "#" + string(by)
}

const dayLayout = time.DateOnly

// DayKey is the sort key before those of the items of a day, and after those of earlier days.
func DayKey(day time.Time) string { return day.UTC().Format(dayLayout) }

// partOf returns the part of a group that a value is in.
func partOf(value string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(value)) // it never fails
	return int(h.Sum32() % parts)
}

// encode returns what the use of a value adds to the attributes of an item.
func (u Use) encode(to map[string]int64, value string) {
	u = u.beyondJobs()
	for _, f := range fields {
		if n := *f.of(&u); n != 0 {
			to[f.name+"#"+value] = n
		}
	}
}

// Addition adds to an item.
type Addition struct {
	Group Group
	Write item.Write // it has no condition
}

// Values returns what is added.
func (a Addition) Values() map[string]Use {
	return Values(a.Write.Applied(nil, contract.AttrPK, contract.AttrSK))
}

// Additions returns what adds the sum to the stored items.
func (s Sum) Additions() (all []Addition) {
	for g, values := range s {
		byPart := map[int]map[string]int64{}
		for value, u := range values {
			n := partOf(value)
			if byPart[n] == nil {
				byPart[n] = map[string]int64{}
			}
			u.encode(byPart[n], value)
		}
		for n, adds := range byPart {
			for _, w := range addsTo(g, n, adds) {
				all = append(all, Addition{g, w})
			}
		}
	}
	return all
}

func addsTo(g Group, part int, adds map[string]int64) []item.Write {
	return item.Write{
		Ref: item.Ref{Table: contract.Tasks, PK: Partition(g.Tenant, g.By),
			SK: fmt.Sprintf("%s#%02d", DayKey(g.Day), part)},
		Name: WriteAdd, Set: map[string]any{contract.AttrExpiresAt: g.Day.Add(Kept).Unix()},
	}.Adding(adds)
}

// Values reads what an item has of each value. An attribute that it does not know counts nothing.
func Values(i item.Item) map[string]Use {
	values := map[string]Use{}
	for name, v := range i {
		letter, value, is := strings.Cut(name, "#")
		n, isNumber := v.(int64)
		if !is || !isNumber {
			continue
		}
		for _, f := range fields {
			if f.name == letter {
				u := values[value]
				*f.of(&u) += n
				values[value] = u
			}
		}
	}
	for value, u := range values {
		values[value] = u.withJobs()
	}
	return values
}

// IsState reports whether a name of a state is one of a sum; the others are of package stats.
func IsState(name string) bool { return strings.HasPrefix(name, contract.UsagePartitions) }

// State adds the sum to the state for the next call of the same window of an event source.
func (s Sum) State(to map[string]string) {
	for g, values := range s {
		adds := map[string]int64{}
		for value, u := range values {
			u.encode(adds, value)
		}
		to[Partition(g.Tenant, g.By)+" "+DayKey(g.Day)] = string(text.MustJSON(adds))
	}
}

// AddState adds what State wrote, and nothing of other names. An error leaves out what cannot be read.
func (s *Sum) AddState(state map[string]string) (err error) {
	for name, body := range state {
		if !IsState(name) {
			continue
		}
		space := max(0, strings.LastIndex(name, " "))
		of, date := strings.SplitN(name[:space], "#", 3), strings.TrimPrefix(name[space:], " ")
		day, wrong := time.Parse(dayLayout, date)
		var adds map[string]int64
		if len(of) != 3 || wrong != nil || json.Unmarshal([]byte(body), &adds) != nil {
			err = errors.Join(err, fmt.Errorf("the use of %q cannot be read", name))
			continue
		}
		counted := item.Item{}
		for attr, n := range adds {
			counted[attr] = n
		}
		for value, u := range Values(counted) {
			s.Add(Group{tenant.ID(of[1]), By(of[2]), day}, value, u)
		}
	}
	return err
}
