package sim

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recovery returns how long a story may take to settle after a fault. With a schedule the delay
// counts twice: once for the schedule, and once for its job, which waits for the schedule.
func (s Story) recovery() time.Duration {
	if s.Recurs {
		return 2*delay + s.Redo
	}
	return delay + s.Redo
}

// stride returns n, so that one point in n is tried. SIM_FULL=1 tries all points (ten of a trouble,
// which takes long) and SIM_STRIDE=n one in n. A long story has many points that are alike, so each
// fault tries some of them.
func (s Story) stride(t *testing.T, points int) int {
	switch {
	case os.Getenv("SIM_FULL") != "" && s.Trouble:
		return 1 + points/10
	case os.Getenv("SIM_FULL") != "":
		return 1
	case points > 150:
		return number(t, "SIM_STRIDE", points*(1+points/1000)*fewer)
	}
	return number(t, "SIM_STRIDE", 16*fewer)
}

// cleanRuns caches the run of each story without faults.
var cleanRuns struct {
	sync.Mutex
	stories map[string]*clean
}

// clean is the run of a story without faults.
type clean struct {
	once   sync.Once
	points []Point
	took   time.Duration
	bad    bool
}

// cleanly returns the points of a story without faults, and how long it takes to settle. It runs
// once per story.
func cleanly(t *testing.T, s Story) ([]Point, time.Duration) {
	t.Helper()
	cleanRuns.Lock()
	if cleanRuns.stories == nil {
		cleanRuns.stories = map[string]*clean{}
	}
	c := cleanRuns.stories[s.Name]
	if c == nil {
		c = new(clean)
		cleanRuns.stories[s.Name] = c
	}
	cleanRuns.Unlock()
	c.once.Do(func() { c.points, c.took, c.bad = play(t, s, Options{Seed: 1}, time.Hour) })
	if c.bad {
		t.FailNow()
	}
	return c.points, c.took
}

// atEachPoint runs every story once for each of its points, with the fault at that point.
func atEachPoint(t *testing.T, f Fault, after time.Duration, skip func(Point) bool) {
	t.Parallel()
	only := os.Getenv("SIM_STORY")
	stories := slices.Concat(Stories, Recurring, Graphs, RunsOfSchedules, Afters, Limited, OneJob, Audited, Unique,
		Backfilled, Logged, Announced, Operated)
	if os.Getenv("SIM_FULL") != "" || os.Getenv("SIM_STRIDE") != "" {
		for _, s := range Troubles { // these run without a fault elsewhere
			s.Trouble = true
			stories = append(stories, s)
		}
	}
	for _, s := range stories {
		if s.Crowded && fewer > 1 || only != "" && !strings.Contains(s.Name, only) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			points, clean := cleanly(t, s)
			step := s.stride(t, len(points))
			first := int(hashed(0, s.Name, string(f)) % uint64(step)) // so that faults try different points
			tried, longest := 0, time.Duration(0)
			for n, p := range points {
				if skip != nil && skip(p) || n%step != first {
					continue
				}
				o := Options{Seed: 1, Plan: At(p, f, after), Late: after + time.Second}
				_, took, bad := play(t, s, o, clean+after+s.recovery()+o.deferral())
				tried++
				longest = max(longest, took)
				if bad {
					t.Fatalf("%s at %s; more of this story is not tried", f, p)
				}
			}
			if os.Getenv("SIM_FULL") != "" {
				t.Logf("%d of %d points, at rest after %s at most", tried, len(points), longest)
			}
		})
	}
}

// fed reports whether a point belongs to what feeds the stages: it never crashes.
func fed(p Point) bool { return p.Stage == Source }

//proof:of 149 168 S17
func TestStory_SurvivesACrashBeforeAnyCall(t *testing.T) {
	atEachPoint(t, CrashBefore, 0, fed)
}

//proof:of 77 168
func TestStory_SurvivesACrashAfterAnyCall(t *testing.T) {
	atEachPoint(t, CrashAfter, 0, fed)
}

func TestStory_SurvivesAnyFailedCall(t *testing.T) { atEachPoint(t, Fail, 0, nil) }

//proof:of 77
func TestStory_SurvivesAnyLostAnswer(t *testing.T) { atEachPoint(t, Lost, 0, nil) }

//proof:of 172
func TestStory_SurvivesAnyRepeatedCall(t *testing.T) { atEachPoint(t, Twice, 0, nil) }

func TestStory_SurvivesAnyHangingCall(t *testing.T) { atEachPoint(t, Hang, 12*time.Second, nil) }

func TestStory_SurvivesAnyLateEffect(t *testing.T) {
	atEachPoint(t, Late, 12*time.Second, nil)
}

// The process freezes for longer than a lease: others take over, and then it goes on.
func TestStory_SurvivesAFreezeBeforeAnyCall(t *testing.T) {
	atEachPoint(t, Freeze, 45*time.Second, func(p Point) bool { return fed(p) || p.Stage == "api" })
}

func TestStory_SurvivesAFreezeAfterAnyCall(t *testing.T) {
	atEachPoint(t, FreezeAfter, 45*time.Second, func(p Point) bool { return fed(p) || p.Stage == "api" })
}

// Slow by as much as a worker claims before due, so that other calls come in between.
func TestStory_SurvivesAnySlowCall(t *testing.T) {
	atEachPoint(t, Slow, 700*time.Millisecond, nil)
}
