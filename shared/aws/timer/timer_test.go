package timer_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/aws/timer"
	"punctual/shared/fault"
	"punctual/shared/message"
)

// group is a small working Scheduler: it raises ConflictException for a name that is taken,
// replaces on update whatever an update leaves out, and knows no client tokens. Before each
// call it asks what the test wants to go wrong.
type group struct {
	entries map[string]map[string]any
	ops     []string
	trouble func(op string, n int) (awstest.Answer, bool) // n counts calls of that op from 1
	counts  map[string]int
}

func (g *group) answer(c awstest.Call) awstest.Answer {
	method, path, _ := strings.Cut(c.Op, " ")
	name := path[strings.LastIndex(path, "/")+1:]
	op := map[string]string{"POST": "create", "PUT": "update", "GET": "get"}[method]
	g.ops = append(g.ops, op)
	g.counts[op]++
	if g.trouble != nil {
		a, wrong := g.trouble(op, g.counts[op])
		if wrong && !a.Lost {
			return a
		}
		if wrong {
			g.do(op, name, c.Body)
			return a
		}
	}
	return g.do(op, name, c.Body)
}

func (g *group) do(op, name, body string) awstest.Answer {
	entry, there := g.entries[name]
	switch {
	case op == "create" && there:
		return awstest.Fault(http.StatusConflict, "ConflictException", `"Message":"Schedule already exists."`)
	case op != "create" && !there:
		return awstest.Fault(http.StatusNotFound, "ResourceNotFoundException", `"Message":"none"`)
	case op == "create", op == "update":
		var fields map[string]any
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			return awstest.Fault(http.StatusBadRequest, "ValidationException", "")
		}
		delete(fields, "ClientToken")
		fields["Name"] = name
		g.entries[name] = fields
		return awstest.OK(`{"ScheduleArn":"arn"}`)
	}
	b, err := json.Marshal(entry)
	if err != nil {
		return awstest.Fault(http.StatusInternalServerError, "InternalServerException", "")
	}
	return awstest.OK(string(b))
}

var settings = timer.Settings{Group: "punctual", Role: "arn:role", Target: "arn:dispatch", DeadLetter: "arn:dead"}

func setup(s timer.Settings, trouble func(op string, n int) (awstest.Answer, bool)) (*timer.Timers, *group) {
	g := &group{entries: map[string]map[string]any{}, counts: map[string]int{}, trouble: trouble}
	return timer.New(awstest.New(g.answer).Config(), s), g
}

func once(op string, times int, a awstest.Answer) func(string, int) (awstest.Answer, bool) {
	return func(did string, n int) (awstest.Answer, bool) { return a, did == op && n <= times }
}

func in(d time.Duration) message.Timer {
	return message.Timer{Name: "j-1", At: time.Now().Add(d), Body: `{"v":1}`, MaxAge: 10 * time.Minute}
}

var conflict = awstest.Fault(http.StatusConflict, "ConflictException", `"Message":"being changed"`)

func TestArm_MakesAnEntryThatFiresOnceAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a bubble's clock starts at 2000-01-01T00:00:00Z
		timers, g := setup(settings, nil)
		m := in(90*time.Minute + 1500*time.Millisecond)
		m.At = m.At.In(time.FixedZone("elsewhere", -5*3600))
		if err := timers.Arm(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(g.entries["j-1"])
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"ActionAfterCompletion":"DELETE","FlexibleTimeWindow":{"Mode":"OFF"},"GroupName":"punctual",` +
			`"Name":"j-1",` +
			`"ScheduleExpression":"at(2000-01-01T01:30:01)","ScheduleExpressionTimezone":"UTC","State":"ENABLED",` +
			`"Target":{"Arn":"arn:dispatch","DeadLetterConfig":{"Arn":"arn:dead"},"Input":"{\"v\":1}",` +
			`"RetryPolicy":{"MaximumEventAgeInSeconds":600,"MaximumRetryAttempts":185},"RoleArn":"arn:role"}}`
		if string(got) != want {
			t.Errorf("the entry is\n%s\nwant\n%s", got, want)
		}
	})
}

// S18: the first CreateSchedule takes effect, the client sees a timeout, the retry a conflict.
//
//proof:of S18
func TestArm_AcceptsItsOwnEarlierSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timers, g := setup(settings, once("create", 1, awstest.Lost()))
		if err := timers.Arm(t.Context(), in(time.Hour)); err != nil {
			t.Errorf("the entry stands as wanted: %v", err)
		}
		if got := strings.Join(g.ops, " "); got != "create create get" {
			t.Errorf("calls were %s", got)
		}
	})
}

// S18, its variant: the entry that is there says something else.
//
//proof:of S18
func TestArm_ReplacesADifferentEntry(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*message.Timer, *timer.Settings){
		"another time":        func(m *message.Timer, _ *timer.Settings) { m.At = m.At.Add(time.Minute) },
		"another body":        func(m *message.Timer, _ *timer.Settings) { m.Body = "other" },
		"another maximum age": func(m *message.Timer, _ *timer.Settings) { m.MaxAge += time.Second },
		"another target":      func(_ *message.Timer, s *timer.Settings) { s.Target = "arn:elsewhere" },
		"another role":        func(_ *message.Timer, s *timer.Settings) { s.Role = "arn:other" },
		"no dead letters":     func(_ *message.Timer, s *timer.Settings) { s.DeadLetter = "" },
	} {
		synctest.Test(t, func(t *testing.T) {
			_, g := setup(settings, nil)
			service := awstest.New(g.answer)
			first := in(time.Hour)
			if err := timer.New(service.Config(), settings).Arm(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			m, s := first, settings
			change(&m, &s)
			if err := timer.New(service.Config(), s).Arm(t.Context(), m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			replaced := maps.Clone(g.entries["j-1"])

			fresh, g2 := setup(s, nil)
			if err := fresh.Arm(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(replaced)
			want, _ := json.Marshal(g2.entries["j-1"])
			if string(got) != string(want) {
				t.Errorf("%s: replaced, the entry is\n%s\nwant, as if made anew,\n%s", name, got, want)
			}
		})
	}
}

func TestArm_ReplacesADisabledEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timers, g := setup(settings, nil)
		if err := timers.Arm(t.Context(), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
		g.entries["j-1"]["State"] = "DISABLED"
		if err := timers.Arm(t.Context(), in(time.Hour)); err != nil || g.entries["j-1"]["State"] != "ENABLED" {
			t.Errorf("%v, the entry is %v; want it to fire", err, g.entries["j-1"]["State"])
		}
	})
}

func TestArm_WaitsOutAConflict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trouble func(string, int) (awstest.Answer, bool)
		ops     string
	}{
		"while it is being made, and gone when looked at": {once("create", 2, conflict),
			"create get create get create"},
		"while it is being replaced": {once("update", 1, conflict),
			"create get update create get update"},
		"and it fires before it can be replaced": {
			once("update", 1, awstest.Fault(http.StatusNotFound, "ResourceNotFoundException",
				"")), "create get update create get update"},
	} {
		synctest.Test(t, func(t *testing.T) {
			timers, g := setup(settings, c.trouble)
			m := in(time.Hour)
			if strings.Contains(c.ops, "update") {
				g.do("create", m.Name, `{"ScheduleExpression":"at(2000-01-01T09:00:00)"}`)
			}
			if err := timers.Arm(t.Context(), m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := strings.Join(g.ops, " "); got != c.ops {
				t.Errorf("%s: calls were %s; want %s", name, got, c.ops)
			}
			if g.entries[m.Name]["ScheduleExpression"] != "at(2000-01-01T01:00:00)" {
				t.Errorf("%s: the entry is %v", name, g.entries[m.Name])
			}
		})
	}
}

func TestArm_ReportsAConflictThatStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timers, g := setup(settings, once("create", 1000, conflict))
		if err := timers.Arm(t.Context(), in(time.Hour)); fault.KindOf(err) != fault.Conflict ||
			g.counts["create"] != session.Tries {
			t.Errorf("%v after %d tries; want a conflict after %d", err, g.counts["create"], session.Tries)
		}
	})
}

// S20: throttles and quotas, 30 % of the calls; every timer exists in the end.
//
//proof:of S20
func TestArm_LosesNothingWhenThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		timers, g := setup(settings, func(op string, _ int) (awstest.Answer, bool) {
			calls++
			code := "ThrottlingException"
			if calls%2 == 0 {
				code = "ServiceQuotaExceededException"
			}
			return awstest.Fault(http.StatusTooManyRequests, code, ""), op == "create" && calls%10 < 3
		})
		for n := range 200 {
			m := in(time.Hour)
			m.Name += "-" + strings.Repeat("x", n%50) + string(rune('a'+n/50))
			if err := timers.Arm(t.Context(), m); err != nil {
				t.Fatalf("timer %d: %v", n, err)
			}
		}
		if len(g.entries) != 200 {
			t.Errorf("%d entries stand; want 200", len(g.entries))
		}
	})
}

func TestArm_CallsAnExceededQuotaAThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timers, _ := setup(settings, once("create", 1000, awstest.Fault(http.StatusPaymentRequired,
			"ServiceQuotaExceededException", "")))
		if err := timers.Arm(t.Context(), in(time.Hour)); fault.KindOf(err) != fault.Throttled {
			t.Errorf("%v; want throttled", err)
		}
	})
}

//proof:of S20
func TestArm_KeepsBelowItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := settings
		s.Rate = 10
		timers, g := setup(s, nil)
		began := time.Now()
		for n := range 40 {
			m := in(time.Hour)
			m.Name = "j-" + strings.Repeat("x", n)
			if err := timers.Arm(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 3*time.Second-time.Millisecond || took > 4*time.Second ||
			len(g.entries) != 40 {
			t.Errorf("40 calls at 10 a second, with 10 at once, took %s; want 3 s", took)
		}
		if got := timers.Counts().TimerCalls; got != 40 {
			t.Errorf("%d calls were counted; want 40", got)
		}
	})
}

func TestArm_SendsNoTimeThatPassesWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := settings
		s.Rate = 1
		timers, g := setup(s, nil)
		for _, m := range []message.Timer{{Name: "a"}, {Name: "b"}} {
			m.At, m.Body, m.MaxAge = time.Now().Add(time.Hour), "x", time.Hour
			if err := timers.Arm(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		// The next turn comes in a second, and so does this time.
		if err := timers.Arm(t.Context(), in(time.Second)); fault.KindOf(err) != fault.Invalid ||
			g.counts["create"] != 2 {
			t.Errorf("%v after %d creations; want invalid, unsent", err, g.counts["create"])
		}
	})
}

func TestArm_RefusesWhatAWSMightMisunderstand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*message.Timer){
			"no name":                      func(m *message.Timer) { m.Name = "" },
			"a name of 65":                 func(m *message.Timer) { m.Name = strings.Repeat("x", 65) },
			"a name with a slash":          func(m *message.Timer) { m.Name = "a/b" },
			"a name with a line":           func(m *message.Timer) { m.Name = "a\n" },
			"no body":                      func(m *message.Timer) { m.Body = "" },
			"a body of over 256 KB":        func(m *message.Timer) { m.Body = strings.Repeat("x", 256<<10+1) },
			"a maximum age under a minute": func(m *message.Timer) { m.MaxAge = 59 * time.Second },
			"a maximum age of over a day":  func(m *message.Timer) { m.MaxAge = 24*time.Hour + 1 },
			"a time that has passed":       func(m *message.Timer) { m.At = time.Now().Add(-time.Second) },
			"now":                          func(m *message.Timer) { m.At = time.Now() },
			"the part of a second that AWS cuts": func(m *message.Timer) {
				m.At = time.Now().Add(999 * time.Millisecond)
			},
		} {
			timers, g := setup(settings, nil)
			m := in(time.Hour)
			change(&m)
			if err := timers.Arm(t.Context(), m); fault.KindOf(err) != fault.Invalid || len(g.ops) != 0 {
				t.Errorf("%s: %v after %v; want invalid, unsent", name, err, g.ops)
			}
		}
	})
}

func TestCreateGroup_MakesItOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
	}{
		"made": {awstest.OK(`{"ScheduleGroupArn":"arn"}`), ""}, "there already": {conflict, ""},
		"not allowed": {awstest.Fault(http.StatusForbidden, "AccessDeniedException", ""), fault.Forbidden},
	} {
		service := awstest.New(func(awstest.Call) awstest.Answer { return c.answer })
		if err := timer.New(service.Config(), settings).CreateGroup(t.Context()); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v; want kind %q", name, err, c.kind)
		}
	}
}
