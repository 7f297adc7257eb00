package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"punctual/shared/cache"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/stats"
	"punctual/shared/telemetry"
	"punctual/shared/usage"
)

const (
	runsKept   = 10_000           // runs whose origin is remembered
	groupsKept = 200              // groups whose values are remembered
	keptFor    = 10 * time.Minute // a run can be forgotten, and another process can add values
)

// origin is where the jobs of a run come from.
type origin struct{ dag, schedule string }

// values are the values of a group that have a count of their own. Stage.mu guards them.
type values struct {
	own   map[string]bool
	bytes int
}

func (v *values) add(value string) {
	if !v.own[value] {
		v.own[value] = true
		v.bytes += len(value)
	}
}

// users finds what a change of a job counts for.
type users struct {
	runs   *cache.Cache[run.Key, origin]
	groups *cache.Cache[usage.Group, *values]
}

func newUsers(now func() time.Time) users {
	return users{
		runs:   cache.New[run.Key](cache.Options[origin]{Age: keptFor, Most: runsKept, Now: now}),
		groups: cache.New[usage.Group](cache.Options[*values]{Age: keptFor, Most: groupsKept, Now: now}),
	}
}

// used returns what changes of the jobs table used. What a value cannot be read for does not count for it.
func (s *Stage) used(ctx context.Context, changes []item.Change) (sum usage.Sum) {
	var rows []job.Row
	var of [][]usage.At
	for _, c := range changes {
		before, after, ok := stats.Rows(c)
		if !ok {
			continue
		}
		if all := usage.Of(before, after); len(all) > 0 {
			rows, of = append(rows, after), append(of, all)
		}
	}
	tags := s.tagsOf(ctx, rows)
	for n, r := range rows {
		from := s.originOf(ctx, r)
		for by, value := range s.valuesOf(r, from, tags[n]) {
			if value == "" {
				continue
			}
			for _, at := range of[n] {
				sum.Add(usage.Group{Tenant: r.Tenant, By: by, Day: usage.DayOf(at.Time)}, value, at.Use)
			}
		}
	}
	return sum
}

func (s *Stage) valuesOf(r job.Row, from origin, tags map[string]string) map[usage.By]string {
	all := map[usage.By]string{usage.ByTask: r.Task, usage.BySchedule: from.schedule, usage.ByDag: from.dag}
	for _, name := range s.UsageTags {
		all[usage.TagPrefix+usage.By(name)] = tags[name]
	}
	return all
}

// tagsOf reads the tags of rows, if some are counted by.
func (s *Stage) tagsOf(ctx context.Context, rows []job.Row) []map[string]string {
	all := make([]map[string]string, len(rows))
	if len(s.UsageTags) == 0 || len(rows) == 0 {
		return all
	}
	labels, err := s.Store.LabelsOf(ctx, rows...)
	if err != nil {
		s.Log.ErrorContext(ctx, "the use of tags is lost", "jobs", len(rows), telemetry.Err, err.Error())
		return all
	}
	for n, l := range labels {
		if l.Tags != "" {
			_ = json.Unmarshal([]byte(l.Tags), &all[n]) // what is no object of strings has no tags
		}
	}
	return all
}

// originOf returns the schedule of a job, or what its run comes from.
func (s *Stage) originOf(ctx context.Context, r job.Row) origin {
	if !r.InRun() {
		return origin{schedule: r.Schedule()}
	}
	from, err := s.users.runs.Get(ctx, run.Of(r), func(ctx context.Context) (origin, error) {
		is, err := s.Store.Run(ctx, run.Of(r))
		if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Undecodable { // or just being forgotten
			return origin{}, nil
		}
		return origin{is.Dag, is.Schedule}, err
	})
	if err != nil {
		s.Log.ErrorContext(ctx, "the use of a dag is lost", telemetry.Err, err.Error())
	}
	return from
}

// bounded returns a sum in which a group has no more values than it may, and the part whose values cannot be read now.
func (s *Stage) bounded(ctx context.Context, sum usage.Sum) (fits, unread usage.Sum, err error) {
	for g, counted := range sum {
		known, wrong := s.users.groups.Get(ctx, g, func(ctx context.Context) (*values, error) {
			read := &values{own: map[string]bool{}}
			err := s.Store.Usage(ctx, g.Tenant, g.By, g.Day, g.Day, func(value string, _ usage.Use) {
				read.add(value)
			})
			return read, err
		})
		if wrong != nil {
			err = errors.Join(err, wrong)
			unread.AddSum(usage.Sum{g: counted})
			continue
		}
		s.mu.Lock()
		for value, u := range counted {
			if known.own[value] || g.Takes(len(known.own)+1, known.bytes+len(value)) {
				known.add(value)
			} else {
				value = usage.Other
			}
			fits.Add(g, value, u)
		}
		s.mu.Unlock()
	}
	return fits, unread, err
}

// flushUse adds what was used to the table. What cannot be added is kept for the next flush.
func (s *Stage) flushUse(ctx context.Context) error {
	s.mu.Lock()
	sum := s.use
	s.use = nil
	s.mu.Unlock()
	fits, unread, err := s.bounded(ctx, sum)
	additions := fits.Additions()
	writes := make([]item.Write, len(additions))
	for n, a := range additions {
		writes[n] = a.Write
	}
	failed, wrong := s.putAll(ctx, writes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use.AddSum(unread)
	for _, n := range failed {
		s.use.AddSum(usage.Sum{additions[n].Group: maps.Clone(additions[n].Values())})
	}
	if err = errors.Join(err, wrong); err != nil {
		return fmt.Errorf("adding what jobs used: %w", err)
	}
	return nil
}
