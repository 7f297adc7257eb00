package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"punctual/shared/job"
)

// GroupLength is how many characters the name of a group has.
const GroupLength = 16

// GroupPattern is the form of the name of a group.
const GroupPattern = `^[0-9a-f]{16}$`

// Group names the cause of a job's death: it is the same for jobs of one task that died with the same code and with
// messages that differ only in numbers, identifiers, times, addresses and quoted parts. It never changes, because users
// keep it: testdata/groups.json lists what it gives.
func Group(task, code, message string) string {
	h := sha256.New()
	for _, part := range []string{"group 1", task, code, shape(message)} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))[:GroupLength]
}

const (
	// shapeBytes is how much of a message counts. A row keeps only the beginning of a long one, and how much of its
	// words that is depends on the length of what is taken out.
	shapeBytes = 48
	taken      = "#"      // is where a varying part was
	cutMark    = "\u2026" // ends a message that was cut
)

var (
	quoted = regexp.MustCompile("\"[^\"]*(\"|$)|`[^`]*(`|$)|\u201c[^\u201d]*(\u201d|$)" + `|(^|[\s(\[{=:,])'[^']*('|$)`)
	dotted = regexp.MustCompile(`^[\pL\pN_-]+(\.[\pL\pN_-]+)+(:[0-9]+)?$`)
)

// shape is the beginning of a message without what varies: whole words.
func shape(message string) string {
	whole, cut := strings.CutSuffix(message, cutMark)
	words := strings.Fields(quoted.ReplaceAllString(whole, " "+taken+" "))
	if cut && len(words) > 0 {
		words = words[:len(words)-1] // it may lack its end
	}
	var b strings.Builder
	last := ""
	for _, word := range words {
		if word = plain(word); word == "" || word == taken && last == taken { // a list of any length is one part
			continue
		}
		if b.Len()+len(word) >= shapeBytes {
			break
		}
		b.WriteString(word + " ")
		last = word
	}
	return b.String()
}

// plain is a word without the punctuation around it, or the sign for what was taken out.
func plain(word string) string {
	if word == taken || strings.ContainsFunc(word, unicode.IsDigit) || strings.ContainsAny(word, "@/\\") {
		return taken
	}
	word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
	if dotted.MatchString(word) {
		return taken
	}
	return word
}

// Hours is how many hours a GroupCount shows, the last one ending now.
const Hours = 24

// GroupCount is how many dead jobs have one cause.
type GroupCount struct {
	Group, Task, Code string
	Count             int
	FirstAt, LastAt   time.Time // when the first and the last of them died
	Example           job.ID    // of the last of them
	Hourly            [Hours]int
}

// Tally counts dead jobs by their cause.
type Tally struct {
	now    time.Time
	groups map[string]*GroupCount
}

// NewTally returns a Tally without jobs, whose last hour ends at now.
func NewTally(now time.Time) *Tally { return &Tally{now, map[string]*GroupCount{}} }

// Add counts a dead job.
func (t *Tally) Add(group, task, code string, id job.ID, deadAt time.Time) {
	g := t.groups[group]
	if g == nil {
		g = &GroupCount{Group: group, Task: task, Code: code, FirstAt: deadAt}
		t.groups[group] = g
	}
	g.Count++
	if deadAt.Before(g.FirstAt) {
		g.FirstAt = deadAt
	}
	if g.Example == "" || deadAt.After(g.LastAt) || deadAt.Equal(g.LastAt) && id > g.Example {
		g.LastAt, g.Example = deadAt, id
	}
	if ago := t.now.Sub(deadAt); ago < Hours*time.Hour {
		g.Hourly[Hours-1-int(max(ago, 0)/time.Hour)]++
	}
}

// Groups returns the groups, the one with most jobs first.
func (t *Tally) Groups() []GroupCount {
	groups := make([]GroupCount, 0, len(t.groups))
	for _, g := range t.groups {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b GroupCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Group, b.Group))
	})
	return groups
}
