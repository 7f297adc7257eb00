package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// What doctor takes for healthy: clocks may differ by half of a signature's five minutes, and passes run
// each minute. Beyond lowQuota, in percent, little of a quota is left.
const (
	maxSkew  = 150 * time.Second
	lapse    = time.Hour // no clock goes wrong so far by itself
	maxLag   = 5 * time.Minute
	lowQuota = 80
)

type doctor struct{}

// finding is one check.
type finding struct {
	Check   string `json:"check"`
	Good    bool   `json:"good"`
	Warning bool   `json:"warning,omitempty"` // it is good, and may soon not be
	Says    string `json:"says"`
}

// word is how a finding is printed.
func (f finding) word() string {
	switch {
	case !f.Good:
		return "NO"
	case f.Warning:
		return "WARNING"
	}
	return "yes"
}

// Run makes every check that can be made, and fails if one is not good.
func (c doctor) Run(s *shell) error {
	var all []finding
	var failed error
	check := func(name, says string, err error) bool {
		f := finding{Check: name, Good: err == nil, Says: says}
		if err != nil {
			f.Says, failed = err.Error(), errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, f)
		return f.Good
	}
	check("command", version(), nil)
	answered := http.Header{}
	health, err := client.Call[rest.HealthAnswer](s.ctx, s.client, rest.GetHealth, client.Request{Answered: answered})
	if check("reaches the API", s.url+", time zones of "+health.ZoneRules, err) {
		me, err := s.client.WhoAmI(s.ctx)
		check("token is accepted", "tenant "+me.Tenant+", scopes "+strings.Join(me.Scopes, " "), err)
		ready, unready := s.client.Readiness(s.ctx)
		now := ready.Now
		if now.IsZero() { // it may be the skew that keeps us out
			now, _ = http.ParseTime(answered.Get("Date")) // zero again: nothing says
		}
		skew := skewOf(now, time.Now(), loopback(s.url))
		if all = append(all, skew); !skew.Good {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", skew.Check, skew.Says))
		}
		if check("tables answer", string(ready.Status), unready) {
			covered := "the search for lost jobs has covered all that was due until " + instant(ready.SweptThrough)
			check("passes keep up", covered, lag(ready.SweptThrough, now))
			says, err := s.versions()
			check("versions fit", says, err)
			says, err = s.pauses()
			check("pauses are known", says, err)
			if ready.Held != nil && len(*ready.Held) > 0 {
				err = fmt.Errorf("restored and held: %s", strings.Join(*ready.Held, ", "))
			}
			check("nothing is held", "no restored table is held", err)
			all = append(all, zoneRules(ready.ZoneRules, now))
			for _, q := range ready.Quotas {
				all = append(all, quotaLeft(q))
			}
		}
	}
	findings := func(yield func(finding, error) bool) {
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	}
	s.width = 0 // what a check says is read whole
	err = list(s, findings, 0, func(f finding) string { return f.Check },
		column[finding]{"CHECK", func(f finding) string { return f.Check }},
		column[finding]{"GOOD", finding.word},
		column[finding]{"SAYS", func(f finding) string { return f.Says }})
	if err != nil {
		return err
	}
	return failed
}

// served is what the API's document says about itself.
type served struct {
	Info struct {
		Version string `json:"version"`
	} `json:"info"`
	Paths map[string]map[string]struct {
		ID string `json:"operationId"`
	} `json:"paths"`
}

// versions compares the operations that are served with those that this command knows.
func (s *shell) versions() (string, error) {
	doc, err := client.Call[served](s.ctx, s.client, rest.GetDocument, client.Request{})
	if err != nil {
		return "", err
	}
	there, newer := map[string]bool{}, 0
	for _, methods := range doc.Paths {
		for _, operation := range methods {
			if operation.ID == "" {
				continue // a path's own fields
			}
			there[operation.ID] = true
			if !slices.ContainsFunc(rest.Operations, func(o rest.Operation) bool { return o.ID == operation.ID }) {
				newer++
			}
		}
	}
	var lacks []string
	for _, o := range rest.Operations {
		if !there[o.ID] {
			lacks = append(lacks, o.ID)
		}
	}
	says := fmt.Sprintf("API %s with %d operations", doc.Info.Version, len(there))
	if newer > 0 {
		says += fmt.Sprintf(", %d newer than this command", newer)
	}
	if len(lacks) > 0 {
		return says, fmt.Errorf("%s is older than this command: it has no %s", says, strings.Join(lacks, ", "))
	}
	return says, nil
}

// pauses says what is paused: work that waits for it is no fault.
func (s *shell) pauses() (string, error) {
	var scopes []string
	for p, err := range s.client.Pauses(s.ctx) {
		if err != nil {
			return "", err
		}
		scopes = append(scopes, p.Scope)
	}
	if len(scopes) == 0 {
		return "no task is paused", nil
	}
	return "paused: " + strings.Join(scopes, ", "), nil
}

// zoneRules says how old the API's time zone rules are. Old ones are a warning: most zones are right by them.
func zoneRules(z rest.ZoneRulesView, now time.Time) finding {
	f := finding{
		Check:   "time zones",
		Good:    true,
		Warning: z.Old,
		Says: fmt.Sprintf("rules of %s, %d days old", z.Version,
			int(now.Sub(z.ReleasedAt).Hours()/24)),
	}
	if z.Old {
		f.Says += "; zones that have changed their clocks since are wrong (infra/runbook/zone-rules.md)"
	}
	return f
}

// quotaLeft says how much of a quota is used. Nothing fails before it is used up, so little room is a warning.
func quotaLeft(q rest.QuotaView) finding {
	return finding{Check: "quota " + string(q.Name), Good: true, Warning: 100*q.Used > lowQuota*q.Limit,
		Says: fmt.Sprintf("%d of %d used, %d %%", q.Used, q.Limit, 100*q.Used/max(1, q.Limit))}
}

// skewOf compares the API's clock with this one. A laptop on this machine may be meant to differ.
func skewOf(there, here time.Time, local bool) finding {
	f := finding{Check: "clocks agree"}
	if there.IsZero() {
		f.Says = "the API does not say what time it is"
		return f
	}
	ahead := there.Sub(here).Round(time.Second)
	by := ahead.Abs().String()
	if days := ahead.Abs() / (24 * time.Hour); days > 1 {
		by = fmt.Sprintf("%d days", days)
	}
	if f.Good = ahead.Abs() <= time.Second; f.Good { // of which the request takes a part
		f.Says = "within 1s"
		return f
	}
	side, start, tokens := "ahead of", "before", "expired too early"
	if ahead < 0 {
		side, start, tokens = "behind", "after", "not yet valid"
	}
	f.Says = fmt.Sprintf("the API's is at %s, %s %s this one: jobs start %[2]s %[4]s this one shows their time",
		instant(&there), by, side, start)
	if f.Good = ahead.Abs() <= maxSkew; f.Good {
		return f
	}
	if !local { // a laptop takes requests without a token
		f.Says += fmt.Sprintf(", and tokens may count as %s; from 5m on, signed requests are refused", tokens)
	}
	if ahead.Abs() > lapse {
		f.Says += "; it may be a laptop that was started with another time (AT=, serve --at)"
		f.Good, f.Warning = local, local
	} else {
		f.Says += "; let the wrong clock be set by NTP"
	}
	return f
}

// lag is an error when the pass behind has not come near now. Before the first pass there is no mark.
func lag(through *time.Time, now time.Time) error {
	if through == nil || now.Sub(*through) < maxLag {
		return nil
	}
	return fmt.Errorf("the search for lost jobs has covered only what was due until %s", instant(through))
}
