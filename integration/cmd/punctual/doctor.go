package main

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// What doctor takes for healthy: clocks may differ by half of a signature's five minutes, and passes run
// each minute. Beyond lowQuota, in percent, little of a quota is left.
const (
	maxSkew  = 150 * time.Second
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

// word is how a finding is told.
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
	answer, err := s.client.REST().GetHealth(s.ctx)
	var date string
	if answer != nil {
		date = answer.Header.Get("Date")
	}
	health, err := client.Read[rest.HealthAnswer](answer, err)
	if check("reaches the API", s.url+", time zones of "+health.ZoneRules, err) {
		skew, err := clockSkew(date)
		check("clocks agree", "within "+skew.String(), err)
		who, err := s.client.REST().WhoAmI(s.ctx)
		me, err := client.Read[rest.WhoamiAnswer](who, err)
		check("token is taken", "tenant "+me.Tenant+", scopes "+strings.Join(me.Scopes, " "), err)
		ready, err := client.Read[rest.ReadyAnswer](s.client.REST().GetReadiness(s.ctx))
		if check("tables answer", string(ready.Status), err) {
			check("passes keep up", "behind to "+instant(ready.SweptThrough), lag(ready.SweptThrough))
			says, err := s.versions()
			check("versions fit", says, err)
			says, err = s.pauses()
			check("pauses are known", says, err)
			if ready.Held != nil && len(*ready.Held) > 0 {
				err = fmt.Errorf("restored and held: %s", strings.Join(*ready.Held, ", "))
			}
			check("nothing is held", "no restored table waits", err)
			for _, q := range ready.Quotas {
				all = append(all, room(q))
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
	doc, err := client.Read[served](s.client.REST().GetDocument(s.ctx))
	if err != nil {
		return "", err
	}
	there, newer := map[string]bool{}, 0
	known := reflect.TypeFor[*rest.Client]()
	for _, methods := range doc.Paths {
		for _, operation := range methods {
			if operation.ID == "" {
				continue // a path's own fields
			}
			name := strings.ToUpper(operation.ID[:1]) + operation.ID[1:]
			there[name] = true
			if _, ok := known.MethodByName(name); !ok {
				newer++
			}
		}
	}
	var lacks []string
	for m := range known.Methods() {
		if name, with := strings.CutSuffix(m.Name, "WithBody"); !with && !there[name] {
			lacks = append(lacks, name)
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

// room says how much of a quota is used. Nothing fails before it is used up, so little room is a warning.
func room(q rest.QuotaView) finding {
	return finding{Check: "quota " + string(q.Name), Good: true, Warning: 100*q.Used > lowQuota*q.Limit,
		Says: fmt.Sprintf("%d of %d used, %d %%", q.Used, q.Limit, 100*q.Used/max(1, q.Limit))}
}

// clockSkew is how far this clock is from that of the API, to the second.
func clockSkew(date string) (time.Duration, error) {
	there, err := http.ParseTime(date)
	if err != nil {
		return 0, errors.New("the API does not say what time it is")
	}
	skew := time.Since(there).Round(time.Second).Abs()
	if skew > maxSkew {
		return skew, fmt.Errorf("this clock is %s from the API's", skew)
	}
	return skew, nil
}

// lag is an error when the pass behind has not come near now. Before the first pass there is no mark.
func lag(through *time.Time) error {
	if through == nil || time.Since(*through) < maxLag {
		return nil
	}
	return fmt.Errorf("the pass behind is at %s", instant(through))
}
