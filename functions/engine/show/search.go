package show

import (
	"cmp"
	"context"
	"iter"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Filter selects jobs. Zero values select any.
type Filter struct {
	Status         job.Status
	Task, Schedule string
	After, Before  time.Time // After ≤ created_at < Before
	from, to       job.ID    // from ≤ id < to, "" is open: where such jobs can be in the list
}

// bounded returns the filter with the ids that it can select. The list is in the order of ids and ends at now. Jobs
// that a schedule has made ahead are listed only with that schedule as the filter.
func (f Filter) bounded(now time.Time) Filter {
	if !f.After.IsZero() {
		f.from = job.NewID(f.After, [10]byte{})
	}
	end := now.Add(time.Millisecond)
	if f.Schedule != "" {
		end = time.Time{}
	}
	if ahead := f.Before.Add(madeAhead); !f.Before.IsZero() && (end.IsZero() || ahead.Before(end)) {
		end = ahead
	}
	if !end.IsZero() {
		f.to = job.NewID(end, [10]byte{})
	}
	return f
}

// madeAhead is how long before its nominal time a schedule's job may be made. Its id has the nominal time.
const madeAhead = contract.Horizon + 2*time.Minute

// rowMay reports whether a job with this row can pass. Its claim may still decide between SCHEDULED, QUEUED and
// RUNNING.
func (f Filter) rowMay(r job.Row) bool {
	switch {
	case f.Task != "" && r.Task != f.Task, !r.ShownIn(f.Task), f.Schedule != "" && r.Schedule() != f.Schedule:
		return false
	case r.CreatedAt.Before(f.After), !f.Before.IsZero() && !r.CreatedAt.Before(f.Before):
		return false
	case f.Status == "":
		return true
	case f.Status == job.Scheduled || f.Status == job.Queued || f.Status == job.Running:
		return r.Status.Open()
	}
	return r.Status == f.Status || f.Status == job.Skipped && job.MayBeSuperseded(r)
}

// listing fills one page of a list of jobs.
type listing struct {
	*Reader
	Filter
	tenant tenant.ID
	limit  int
	began  time.Time
	items  []Job
}

// late reports whether the request has read for so long that its page ends.
func (p *listing) late() bool { return p.Clock.Now().Sub(p.began) >= contract.MaxListRead }

// show adds the jobs of these rows that are shown with the status of the filter. It returns the last one once the page
// is full, else "".
func (p *listing) show(ctx context.Context, rows []job.Row) (last job.ID, err error) {
	shown, err := p.Listed(ctx, p.tenant, rows)
	for _, v := range shown {
		if p.Status != "" && v.Shown() != p.Status {
			continue
		}
		if p.items = append(p.items, v); len(p.items) == p.limit {
			return v.ID, err
		}
	}
	return "", err
}

// read fills the page with jobs of these rows. It returns the last id that it read, and whether that was the end. It
// shows rows in lots, so that many claims are one read.
func (p *listing) read(ctx context.Context, rows iter.Seq2[job.Row, error]) (last job.ID, end bool, err error) {
	read := 0
	var lot []job.Row
	for r, err := range rows {
		if err != nil && fault.KindOf(err) != fault.Undecodable {
			return last, false, err
		}
		read++
		last = r.ID
		if err != nil { // the others are still listed
			p.unreadable(ctx, r.Key, err)
		} else if p.rowMay(r) {
			lot = append(lot, r)
		}
		enough := p.late()
		if p.Status == job.Running { // the due index knows the other running jobs
			enough = read >= MaxRead
		}
		most := store.ReadAtOnce // not many of them may have the status
		if p.Status == "" {
			most = p.limit - len(p.items)
		}
		if len(lot) < most && !enough {
			continue
		}
		full, err := p.show(ctx, lot)
		if err != nil || full != "" || enough {
			return cmp.Or(full, last), false, err
		}
		lot = lot[:0]
	}
	full, err := p.show(ctx, lot)
	return cmp.Or(full, last), full == "", err
}
