package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/operation"
	runs "punctual/shared/run" // run is a word of this package
	"punctual/shared/schedule"
	"punctual/shared/tenant"
	"punctual/shared/webhook"
)

// accepting are the writes that accept what a request asks for, by its action: the first one of them that is made takes
// the entry of the request into its transaction. What follows from it, such as the edits of the schedules that name an
// exclusion, has no entry of its own.
var accepting = map[audit.Action][]string{
	audit.JobCancel:  {job.WriteStop, job.WriteCancelBlocked},
	audit.JobPause:   {job.WritePause, job.WritePauseBlocked},
	audit.JobResume:  {job.WriteResume, job.WriteResumeBlocked},
	audit.JobPatch:   {job.WriteReschedule, job.WriteEditBlocked},
	audit.JobRunNow:  {job.WriteReschedule},
	audit.JobRedrive: {job.WriteRedrive, runs.WriteBegin}, // the latter for the job of a node
	audit.JobDelete:  {job.WriteForget},

	audit.TaskPut:    {WriteTaskPut},
	audit.TaskDelete: {WriteTaskDelete},

	audit.SchedulePut:      changesOfSchedules,
	audit.SchedulePatch:    changesOfSchedules,
	audit.ScheduleDelete:   {schedule.WriteDelete},
	audit.SchedulePause:    {schedule.WritePause},
	audit.ScheduleResume:   {schedule.WriteResume},
	audit.ScheduleRunNow:   {job.WriteAccept},
	audit.ScheduleBackfill: {operation.WriteCreate},

	audit.ExclusionPut:    {WriteExclusionPut},
	audit.ExclusionDelete: {WriteExclusionDelete},

	audit.PausePut:    {WritePausePut},
	audit.PauseDelete: {WritePauseDelete},

	audit.DagPut:    {WriteDagPut},
	audit.DagDelete: {WriteDagDelete},

	audit.RunPause:  {runs.WritePause},
	audit.RunResume: {runs.WriteResume},
	audit.RunCancel: {runs.WriteStop, runs.WriteStopAlways},
	audit.RunRetry:  {runs.WriteBegin},
	audit.RunDelete: {job.WriteForget, runs.WriteForget},

	audit.NodeRetry:    {runs.WriteBegin},
	audit.NodeSkip:     {runs.WriteTouch, runs.WriteBegin},
	audit.NodeComplete: {runs.WriteTouch, runs.WriteBegin},

	audit.DeadLettersRedrive: {job.WriteRedrive, runs.WriteBegin},
	audit.DeadLettersPurge:   {job.WriteForget},

	audit.LimitPut:    {limit.WritePut},
	audit.LimitDelete: {limit.WritePut}, // a deleted limit stays as a note

	audit.WebhookPut:    {webhook.WritePut},
	audit.WebhookDelete: {webhook.WriteDelete},

	audit.OperationCreate:  {operation.WriteCreate},
	audit.OperationPause:   {operation.WriteChange},
	audit.OperationResume:  {operation.WriteChange},
	audit.OperationStop:    {operation.WriteChange},
	audit.OperationProceed: {operation.WriteChange},
}

// changesOfSchedules are the writes of an edit; one that changes only the pause is a pause or a resume.
var changesOfSchedules = []string{schedule.WriteCreate, schedule.WriteEdit, schedule.WritePause, schedule.WriteResume}

// audited is a table that writes the entry of a request in the transaction of the write that accepts it. A write
// without an intent in its context costs and does what it does in the table below.
type audited struct{ Table }

// entryFor returns the write of the entry that goes with those writes; false if none does.
func entryFor(i *audit.Intent, writes ...item.Write) (item.Write, bool) {
	names := accepting[i.Action()]
	if !slices.ContainsFunc(writes, func(w item.Write) bool { return !w.Check && slices.Contains(names, w.Name) }) {
		return item.Write{}, false
	}
	return i.Write()
}

func (a audited) Write(ctx context.Context, w item.Write) (item.Item, error) {
	i := audit.From(ctx)
	entry, ok := entryFor(i, w)
	if !ok {
		return a.Table.Write(ctx, w)
	}
	if err := a.Table.Commit(ctx, w, entry); err != nil {
		return nil, err
	}
	i.Written()
	if w.Put != nil || w.Delete {
		return w.Put, nil
	}
	return a.Get(ctx, w.Ref) // a transaction returns no item; another writer may have changed it since
}

// Commit puts the entry last, so that a refusal names the other writes by their numbers.
func (a audited) Commit(ctx context.Context, writes ...item.Write) error {
	i := audit.From(ctx)
	entry, ok := entryFor(i, writes...)
	if !ok {
		return a.Table.Commit(ctx, writes...)
	}
	err := a.Table.Commit(ctx, append(slices.Clone(writes), entry)...)
	if err == nil {
		i.Written()
	}
	return err
}

// AuditQuery asks for entries of a tenant, newest first.
type AuditQuery struct {
	audit.Filter
	From, Before time.Time // From ≤ at < Before; From is needed, Before too
	Below        string    // the place of the last one of the page before; "" is the newest
	Limit        int       // entries of a page, at most; at least 1
}

// AuditEntry is an entry in a list, and the place after which the list goes on.
type AuditEntry struct {
	audit.Entry
	Position string
}

// How much one page reads at most: queries, one at least for each day, and entries.
const (
	auditQueries = 60
	auditRead    = 1_000
)

// AuditEntries implements AuditTrail. It goes from day to day, as each has a partition of its own.
func (s *Store) AuditEntries(
	ctx context.Context, t tenant.ID, q AuditQuery,
) (found []AuditEntry, next string, err error) {
	day, to := auditDay(q.Before), audit.SortFrom(q.Before)
	if d, sk, ok := parsePosition(q.Below); ok {
		day, to = d, sk
	}
	first, read, cursor := auditDay(q.From), 0, ""
	for range auditQueries {
		if day.Before(first) {
			return found, "", nil
		}
		query := item.Query{Table: contract.Audit, PK: audit.Partition(t, day), Descending: true, Limit: ReadAtOnce,
			Consistent: true, Cursor: cursor, To: to}
		if day.Equal(first) {
			query.From = audit.SortFrom(q.From)
		}
		page, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, "", err
		}
		for _, i := range page.Items {
			next = positionOf(day, i.Str(contract.AttrSK))
			if e, err := audit.Parse(i); err == nil && q.Selects(e) {
				found = append(found, AuditEntry{e, next})
			}
			if read++; len(found) == q.Limit || read == auditRead {
				return found, next, nil
			}
		}
		if cursor = page.Cursor; cursor == "" {
			day, to = day.AddDate(0, 0, -1), endOfDay
			next = positionOf(day, to)
		}
	}
	return found, next, nil
}

// endOfDay is above every sort key of a day.
const endOfDay = "~"

func auditDay(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// positionOf is the place of a sort key of a day in the list.
func positionOf(day time.Time, sk string) string { return day.Format(time.DateOnly) + " " + sk }

func parsePosition(position string) (day time.Time, sk string, ok bool) {
	date, sk, ok := strings.Cut(position, " ")
	day, err := time.Parse(time.DateOnly, date)
	return day, sk, ok && err == nil && sk != ""
}
