package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type bench struct {
	Task    string        `arg:"" optional:"" default:"echo" help:"Name of the task."`
	Payload string        `short:"p" help:"Payload of each job: JSON, @file, or - for standard input."`
	Jobs    int           `short:"n" default:"500" help:"Number of jobs to create."`
	Clients int           `short:"c" default:"8" help:"Number of concurrent requests."`
	Within  time.Duration `default:"1m" help:"Maximum wait for the jobs to end."`
	Yes     bool          `short:"y" help:"Do not ask for confirmation before sending to another machine."`
}

// measured is what a bench has found.
type measured struct {
	Jobs     int            `json:"jobs"`
	Refused  int            `json:"refused"`
	Rate     float64        `json:"accepted_per_second"`
	Accept   percentiles    `json:"accept_ms"`         // of one request
	Lateness percentiles    `json:"start_lateness_ms"` // of those that started
	Over     map[string]int `json:"over"`              // by status
	Took     float64        `json:"seconds"`           // from the first request to the last end
}

type percentiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func percentilesOf(all []int64) (p percentiles) {
	if len(all) == 0 {
		return p
	}
	slices.Sort(all)
	at := func(part float64) int64 { return all[min(int(part*float64(len(all))), len(all)-1)] }
	return percentiles{at(0.5), at(0.99), all[len(all)-1]}
}

func (p percentiles) String() string {
	return fmt.Sprintf("p50 %d ms, p99 %d ms, max %d ms", p.P50, p.P99, p.Max)
}

// Run creates the jobs, waits for their ends, and says how fast both were.
func (c bench) Run(s *shell) error {
	if c.Jobs < 1 || c.Clients < 1 || c.Clients > 256 {
		return usage{errors.New("want at least one job, and 1 to 256 requests at once")}
	}
	payload, err := s.value("--payload", c.Payload)
	if err != nil {
		return err
	}
	if err := c.ask(s); err != nil {
		return err
	}
	request := rest.JobRequest{Task: c.Task, Tags: &map[string]string{"bench": "punctual"}}
	if payload != nil {
		request.Payload = payload
	}
	start := time.Now()
	made, err := c.create(s, request)
	m := made.measured(c.Jobs, time.Since(start))
	if err == nil && len(made.ids) > 0 {
		err = c.await(s, made.ids, made.first, &m)
	}
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return interrupted(fmt.Sprintf("%d jobs are accepted and go on; see them: punctual ls --task %s", len(made.ids),
			c.Task))
	}
	if err != nil && len(made.ids) == 0 {
		return err
	}
	m.Took = time.Since(start).Seconds()
	if err := m.show(s); err != nil {
		return err
	}
	return err
}

// ask lets a person say no before other machines get work.
func (c bench) ask(s *shell) error {
	if c.Yes || loopback(s.url) {
		return nil
	}
	return s.confirm(c.Yes, fmt.Sprintf("%d jobs of task %s would go to %s, which is not this machine", c.Jobs, c.Task,
		s.url), "nothing was sent")
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// made is what was created.
type made struct {
	ids     map[string]bool
	first   time.Time // when the first was created, by the API's clock
	took    []int64
	refused int
}

func (m made) measured(jobs int, d time.Duration) measured {
	return measured{Jobs: jobs, Refused: m.refused, Rate: float64(len(m.ids)) / d.Seconds(),
		Accept: percentilesOf(m.took), Over: map[string]int{}}
}

// create creates all jobs; it returns an error when one is refused and says so for all.
func (c bench) create(s *shell, request rest.JobRequest) (made, error) {
	m := made{ids: map[string]bool{}}
	var mu sync.Mutex
	var failed error
	var next atomic.Int64
	var clients sync.WaitGroup
	for range c.Clients {
		clients.Go(func() {
			for s.ctx.Err() == nil && next.Add(1) <= int64(c.Jobs) {
				from := time.Now()
				job, err := s.client.CreateJob(s.ctx, "", request)
				took := time.Since(from).Milliseconds()
				mu.Lock()
				if err != nil {
					m.refused++
					failed = err
				} else {
					m.ids[job.JobID] = true
					m.took = append(m.took, took)
					if m.first.IsZero() || job.CreatedAt.Before(m.first) {
						m.first = job.CreatedAt
					}
				}
				s.progress("accepted %d of %d", len(m.ids), c.Jobs)
				mu.Unlock()
				if err != nil && !errors.Is(err, client.RateLimited) {
					next.Add(int64(c.Jobs)) // the others would be refused, too
				}
			}
		})
	}
	clients.Wait()
	s.progress("")
	if s.ctx.Err() != nil {
		return m, s.ctx.Err()
	}
	if errors.Is(failed, client.RateLimited) && len(m.ids) > 0 {
		failed = nil // which is counted
	}
	return m, failed
}

// await looks at the jobs until all have ended, or time is up.
func (c bench) await(s *shell, ids map[string]bool, from time.Time, m *measured) error {
	end := time.Now().Add(c.Within)
	for {
		over, late := map[string]int{}, []int64{}
		n := 0
		filter := rest.ListJobsParams{Task: &c.Task, CreatedAfter: new(from.Add(-time.Millisecond)), Limit: new(100)}
		for j, err := range s.client.Jobs(s.ctx, &filter) {
			if err != nil {
				return err
			}
			if !ids[j.JobID] {
				continue
			}
			if j.StartLatenessMs != nil {
				late = append(late, *j.StartLatenessMs)
			}
			if client.Over(string(j.Status)) {
				over[string(j.Status)]++
				n++
			}
		}
		s.progress("over %d of %d", n, len(ids))
		m.Over, m.Lateness = over, percentilesOf(late)
		if n == len(ids) {
			s.progress("")
			return nil
		}
		if time.Now().After(end) {
			s.progress("")
			return fmt.Errorf("%d jobs are not over after %s; they go on", len(ids)-n, c.Within)
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (m measured) show(s *shell) error {
	if s.output == "json" || s.output == "yaml" {
		return s.encode(m)
	}
	over, err := json.Marshal(m.Over)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out,
		"accepted   %.0f jobs/s (%d of %d; %s a request)\nlateness   %s\nover       %s in %.1f s\n",
		m.Rate, m.Jobs-m.Refused, m.Jobs, m.Accept, m.Lateness,
		strings.NewReplacer(`"`, "", "{", "", "}", "", ":", " ", ",", ", ").Replace(string(over)), m.Took)
	return err
}
