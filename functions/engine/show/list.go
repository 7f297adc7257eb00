package show

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

// List returns one page of the jobs of a tenant, from a position, "" being the beginning, and the position of the next
// page, "" at the end.
func (s *Reader) List(
	ctx context.Context, t tenant.ID, f Filter, position string, limit int,
) (page []Job, next string, err error) {
	p := &listing{Reader: s, Filter: f.bounded(s.Now()), tenant: t, limit: limit, began: s.Clock.Now()}
	next, err = p.fill(ctx, position)
	return p.items, next, err
}

// fill fills the page that begins after a position, and returns where the next one begins; "" is the end.
func (p *listing) fill(ctx context.Context, position string) (next string, err error) {
	before := p.to
	if position != "" && (before == "" || job.ID(position) < before) {
		before = job.ID(position)
	}
	switch {
	case p.Status == job.Dead:
		return p.dead(ctx, before, position)
	case p.Task != "" && p.Status != job.Running:
		return p.ofTask(ctx, before)
	}
	last, end, err := p.read(ctx, p.Store.Newest(ctx, p.tenant, p.from, before, p.limit))
	switch {
	case err != nil || end:
		return "", err
	case p.Status == job.Running && len(p.items) < p.limit:
		keys, err := p.waking(ctx)
		if err != nil {
			return "", err
		}
		return p.among(ctx, keys, last)
	}
	return string(last), nil
}

// ofTask fills the page with the jobs of a task. It reads only the stretches in which the task has jobs.
func (p *listing) ofTask(ctx context.Context, before job.ID) (next string, err error) {
	var below time.Time
	if before != "" {
		below = before.At()
	}
	for where, err := range p.Store.Stretches(ctx, p.tenant, p.Task, below) {
		if err != nil {
			return "", err
		}
		from, to := job.NewID(where.From, [10]byte{}), job.NewID(where.To, [10]byte{})
		if before != "" {
			to = min(to, before)
		}
		if to <= max(p.from, from) { // all later stretches are older
			if to <= p.from {
				return "", nil
			}
			continue
		}
		last, end, err := p.read(ctx,
			p.Store.NewestOfTask(ctx, p.tenant, p.Task, where.Parts, max(p.from, from), to))
		switch {
		case err != nil:
			return "", err
		case !end:
			return string(last), nil
		case p.late():
			return string(from), nil
		}
	}
	return "", nil
}
