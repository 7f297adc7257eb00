package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type tailJobs struct {
	Task     string        `help:"Name of the task whose jobs are shown."`
	Schedule string        `help:"Name of the schedule whose jobs are shown."`
	Every    time.Duration `default:"1s" help:"Interval between two queries of the API."`
	For      time.Duration `help:"Time to watch; default: until Ctrl-C."`
}

// What tail looks at: jobs that run or have died, whenever they were made, and others that were made within this
// time before the newest, so many at most. Jobs of schedules are made half an hour before they are due.
const (
	tailAge  = time.Hour
	tailMost = 500
)

// watching is what tail knows. Its times are the API's.
type watching struct {
	seen    map[string]sight
	running map[string]bool
	polled  time.Time  // when the last look was, by the API's clock; zero: nothing has asked yet
	made    *time.Time // when the newest job was
	died    *time.Time // when the newest dead one did
}

// sight is a job as it was seen.
type sight struct {
	status  rest.JobViewStatus
	attempt int64
	at      time.Time
}

// Run writes a line for each job that starts, ends or fails. What is there when it begins is no news, but for
// what runs.
func (c tailJobs) Run(s *shell) error {
	if c.Every < 100*time.Millisecond {
		return usage{errors.New("--every: want 100ms or more")}
	}
	var over <-chan time.Time
	if c.For > 0 {
		over = time.After(c.For)
	}
	s.warnOfTask(c.Task)
	w := &watching{seen: map[string]sight{}, running: map[string]bool{}}
	lost := false
	for first := true; ; {
		jobs, err := c.poll(s, w)
		switch {
		case err == nil:
			for _, j := range jobs {
				w.note(s, j, first)
			}
			first, lost = false, false
			w.forget()
		case s.ctx.Err() != nil || first || code(err) != exitUnreached:
			return w.goesOn(s, err)
		case !lost: // a restart, most likely
			lost = true
			_, _ = fmt.Fprintln(s.err, "punctual: the API cannot be reached; looking again")
		}
		select {
		case <-s.ctx.Done():
			return w.goesOn(s, s.ctx.Err())
		case <-over:
			return nil
		case <-time.After(c.Every):
		}
	}
}

// poll reads jobs, those first that became what they are first.
func (c tailJobs) poll(s *shell, w *watching) ([]rest.JobView, error) {
	w.polled = time.Time{}
	found := map[string]rest.JobView{}
	take := func(filter rest.ListJobsParams) error {
		filter.Task, filter.Schedule, filter.Limit = ptr(c.Task), ptr(c.Schedule), new(100)
		n := 0
		for j, err := range s.client.Jobs(s.ctx, &filter) {
			if err != nil {
				return err
			}
			found[j.JobID] = j
			if w.made == nil || j.CreatedAt.After(*w.made) {
				w.made = new(j.CreatedAt)
			}
			if n++; n == tailMost {
				break
			}
		}
		return nil
	}
	running := rest.ListJobsParamsStatus("RUNNING")
	if err := take(rest.ListJobsParams{Status: &running}); err != nil {
		return nil, err
	}
	still := maps.Clone(found)
	var recent rest.ListJobsParams
	if w.made != nil {
		recent.CreatedAfter = new(w.made.Add(-tailAge))
	}
	if err := take(recent); err != nil {
		return nil, err
	}
	n := 0
	for d, err := range s.client.DeadLetters(s.ctx, &rest.ListDeadLettersParams{Task: ptr(c.Task),
		DeadAfter: w.died}) {
		if err != nil {
			return nil, err
		}
		if w.died == nil || d.DeadAt.After(*w.died) {
			w.died = new(d.DeadAt)
		}
		if c.Schedule == "" || of(d.Schedule) == c.Schedule {
			found[d.JobID] = rest.JobView{JobID: d.JobID, Task: d.Task, Status: rest.JobViewStatus(d.Status),
				Attempt: d.Attempt, StatusReason: d.StatusReason, StartedAt: d.StartedAt, FinishedAt: d.FinishedAt,
				StartLatenessMs: d.StartLatenessMs, CreatedAt: d.CreatedAt, DueAt: d.DueAt}
		}
		if n++; n == tailMost {
			break
		}
	}
	for id := range w.running { // it ended, but is too old for the list
		if _, ok := found[id]; !ok {
			j, err := s.client.Job(s.ctx, id)
			if errors.Is(err, client.NotFound) {
				delete(w.running, id)
				continue
			}
			if err != nil {
				return nil, err
			}
			found[id] = j
		} else if _, ok := still[id]; !ok {
			delete(w.running, id)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b rest.JobView) int { return moment(a).Compare(moment(b)) }),
		nil
}

// moment is when a job became what it is.
func moment(j rest.JobView) time.Time {
	for _, t := range []*time.Time{j.FinishedAt, j.StartedAt} {
		if t != nil {
			return *t
		}
	}
	return j.CreatedAt
}

// note writes a line if the job has started, ended or failed since it was seen.
func (w *watching) note(s *shell, j rest.JobView, first bool) {
	was, known := w.seen[j.JobID]
	now := sight{j.Status, j.Attempt, time.Now()}
	w.seen[j.JobID] = now
	runs := j.Status == "RUNNING"
	if runs {
		w.running[j.JobID] = true
	} else {
		delete(w.running, j.JobID)
	}
	same := known && was.status == now.status && was.attempt == now.attempt
	waits := !runs && !client.Over(string(j.Status))
	retries := waits && known && j.Attempt > was.attempt
	if same || first && !runs || waits && !retries {
		return
	}
	if s.output == "json" || s.output == "yaml" { // a stream of either is one document a line
		line, err := json.Marshal(j)
		if err == nil {
			_, _ = s.out.Write(append(line, '\n'))
		}
		return
	}
	if s.output == "name" {
		_, _ = fmt.Fprintln(s.out, j.JobID)
		return
	}
	what, at := string(j.Status), moment(j)
	if retries {
		if w.polled.IsZero() {
			w.polled = s.now()
		}
		what, at = "RETRIES", w.polled
	}
	more := []string{fmt.Sprint("attempt ", j.Attempt)}
	if ms := j.StartLatenessMs; ms != nil {
		more = append(more, fmt.Sprintf("%d ms late", *ms))
	}
	if j.StartedAt != nil && j.FinishedAt != nil {
		more = append(more, "took "+j.FinishedAt.Sub(*j.StartedAt).Round(time.Millisecond).String())
	}
	if j.StatusReason != nil {
		more = append(more, plain(reason(j.StatusReason)))
	}
	_, _ = fmt.Fprintf(s.out, "%s  %s  %s  %s  %s\n", at.Local().Format(time.TimeOnly),
		s.paint(fmt.Sprintf("%-9s", what)), j.JobID, plain(j.Task), strings.Join(more, ", "))
}

// forget drops jobs that no look can find any more.
func (w *watching) forget() {
	for id, seen := range w.seen {
		if time.Since(seen.at) > 2*tailAge {
			delete(w.seen, id)
		}
	}
}

// goesOn says after Ctrl-C what goes on.
func (w *watching) goesOn(s *shell, err error) error {
	if s.ctx.Err() == nil {
		return err
	}
	if len(w.running) == 0 {
		return interrupted("nothing runs now; what is due later goes on")
	}
	ids := slices.Sorted(maps.Keys(w.running))
	shown := strings.Join(ids[:min(len(ids), 5)], ", ")
	if len(ids) > 5 {
		shown += fmt.Sprintf(" and %d more", len(ids)-5)
	}
	return interrupted(fmt.Sprintf("what runs goes on: %s; stop one: punctual cancel ID", shown))
}
