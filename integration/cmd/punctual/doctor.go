package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// What doctor takes for healthy: clocks may differ by half of a signature's five minutes, and passes run
// each minute.
const (
	maxSkew = 150 * time.Second
	maxLag  = 5 * time.Minute
)

type doctor struct{}

// finding is one check.
type finding struct {
	Check string `json:"check"`
	Good  bool   `json:"good"`
	Says  string `json:"says"`
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
			if ready.Held != nil && len(*ready.Held) > 0 {
				err = fmt.Errorf("restored and held: %s", strings.Join(*ready.Held, ", "))
			}
			check("nothing is held", "no restored table waits", err)
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
		column[finding]{"GOOD", func(f finding) string { return map[bool]string{true: "yes", false: "NO"}[f.Good] }},
		column[finding]{"SAYS", func(f finding) string { return f.Says }})
	if err != nil {
		return err
	}
	return failed
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
