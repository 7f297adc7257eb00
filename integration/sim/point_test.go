package sim

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a single fault may cost: a visibility or a grace of three minutes, a minute until the
// sweeper's next pass, and a lease for what it then starts anew.
const delay = 5 * time.Minute

// recovery is how long it may take until all is well again. A schedule may wait for the sweeper,
// and a job of it, which then still waits for the schedule, once more.
func (s Story) recovery() time.Duration {
	if s.Recurs {
		return 2*delay + s.Again
	}
	return delay + s.Again
}

// stride is how many points are passed over for one that is tried; SIM_FULL=1 tries all, and
// SIM_STRIDE=n one in n; of a trouble, which is long and asks much by itself, SIM_FULL=1 tries
// ten. A long story has many points that are alike: one is tried, another with
// each fault, or of the longest with some.
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

// told remembers what each story is like when nothing fails.
var told struct {
	sync.Mutex
	stories map[string]*clean
}

// clean is a story of which nothing failed.
type clean struct {
	once   sync.Once
	points []Point
	took   time.Duration
	bad    bool
}

// cleanly returns the points that a story passes when nothing fails, and how long it takes. It
// is told once.
func cleanly(t *testing.T, s Story) ([]Point, time.Duration) {
	t.Helper()
	told.Lock()
	if told.stories == nil {
		told.stories = map[string]*clean{}
	}
	c := told.stories[s.Name]
	if c == nil {
		c = new(clean)
		told.stories[s.Name] = c
	}
	told.Unlock()
	c.once.Do(func() { c.points, c.took, c.bad = tell(t, s, Options{Seed: 1}, time.Hour) })
	if c.bad {
		t.FailNow()
	}
	return c.points, c.took
}

// atEachPoint tells every story once for each of its points, with that fault there.
func atEachPoint(t *testing.T, f Fault, after time.Duration, skip func(Point) bool) {
	t.Parallel()
	only := os.Getenv("SIM_STORY")
	stories := slices.Concat(Stories, Recurring)
	if os.Getenv("SIM_FULL") != "" || os.Getenv("SIM_STRIDE") != "" {
		for _, s := range Troubles { // told once without a fault anyway
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
			first := int(hashed(0, s.Name, string(f)) % uint64(step)) // not the same points with each fault
			tried, longest := 0, time.Duration(0)
			for n, p := range points {
				if skip != nil && skip(p) || n%step != first {
					continue
				}
				o := Options{Seed: 1, Plan: At(p, f, after), Behind: after + time.Second}
				_, took, bad := tell(t, s, o, clean+after+s.recovery())
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

// Nobody dies in what only feeds the stages.
func fed(p Point) bool { return p.Stage == Source }

func TestAStoryEndsWellWhenAProcessDiesJustBeforeACall(t *testing.T) {
	atEachPoint(t, CrashBefore, 0, fed)
}

func TestAStoryEndsWellWhenAProcessDiesJustAfterACall(t *testing.T) {
	atEachPoint(t, CrashAfter, 0, fed)
}

func TestAStoryEndsWellWhenACallFails(t *testing.T) { atEachPoint(t, Fail, 0, nil) }

func TestAStoryEndsWellWhenAnAnswerIsLost(t *testing.T) { atEachPoint(t, Lost, 0, nil) }

func TestAStoryEndsWellWhenACallHappensTwice(t *testing.T) { atEachPoint(t, Twice, 0, nil) }

func TestAStoryEndsWellWhenACallHangs(t *testing.T) { atEachPoint(t, Hang, 12*time.Second, nil) }

func TestAStoryEndsWellWhenACallTakesEffectLate(t *testing.T) {
	atEachPoint(t, Late, 12*time.Second, nil)
}

// Stands still for longer than a lease: others take over, and then it goes on.
func TestAStoryEndsWellWhenAProcessStandsStillForAWhile(t *testing.T) {
	atEachPoint(t, Freeze, 45*time.Second, func(p Point) bool { return fed(p) || p.Stage == "api" })
}

func TestAStoryEndsWellWhenAProcessStandsStillWithAnAnswerInHand(t *testing.T) {
	atEachPoint(t, FreezeAfter, 45*time.Second, func(p Point) bool { return fed(p) || p.Stage == "api" })
}

// Slow by as much as a worker claims before due: others come in between.
func TestAStoryEndsWellWhenACallIsSlow(t *testing.T) {
	atEachPoint(t, Slow, 700*time.Millisecond, nil)
}
