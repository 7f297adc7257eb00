package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// KeepContents implements ContentWriter.
func (s *Store) KeepContents(ctx context.Context, r job.Row, c job.Contents) error {
	if r.PayloadIn == job.InBlob {
		if err := s.PutPayload(ctx, r, c.Payload); err != nil {
			return fmt.Errorf("keeping the payload of job %s: %w", r.ID, err)
		}
	}
	for _, w := range r.PutContents(c) {
		if err := s.Put(ctx, w); err != nil {
			return fmt.Errorf("keeping contents of job %s (%s): %w", r.ID, w.Name, err)
		}
	}
	return nil
}

// ContentsOf implements ContentReader.
func (s *Store) ContentsOf(ctx context.Context, r job.Row) (c job.Contents, err error) {
	if c.Payload, err = s.Payload(ctx, r); err != nil {
		return c, err
	}
	labels, err := s.LabelsOf(ctx, r)
	if err != nil {
		return c, err
	}
	if c.Labels = labels[0]; c.Labels.Labelled() != r.Labelled {
		return c, fault.New(fault.NotFound, nil, "reading the labels of job %s", r.ID)
	}
	return c, nil
}

// contentReads is how often ScheduleWithContents reads a schedule before it gives up.
const contentReads = 8

// ScheduleWithContents reads a schedule by read, and the contents of its jobs. An edit between the two reads may have
// replaced the contents; then it reads both once more. A schedule whose contents are replaced each time is a
// fault.Conflict.
func ScheduleWithContents(
	ctx context.Context, s ScheduleReader, read func() (schedule.Schedule, error),
) (found schedule.Schedule, contents job.Contents, err error) {
	for range contentReads {
		if found, err = read(); err != nil {
			return found, job.Contents{}, err
		}
		contents, err = s.ScheduleContents(ctx, found)
		if fault.KindOf(err) != fault.NotFound {
			return found, contents, err
		}
	}
	return found, job.Contents{}, fault.New(fault.Conflict, nil,
		"reading schedule %q: its payload was replaced %d times meanwhile", found.Name, contentReads)
}

// ScheduleContents implements ScheduleReader.
func (s *Store) ScheduleContents(ctx context.Context, c schedule.Schedule) (job.Contents, error) {
	payload, err := s.SchedulePayload(ctx, c)
	return job.Contents{Payload: payload, Labels: c.Template.Labels}, err
}

// LabelsOf implements ContentReader.
func (s *Store) LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error) {
	labels := make([]job.Labels, len(rows))
	var refs []item.Ref
	var at []int
	for n, r := range rows {
		if r.Tagged {
			refs, at = append(refs, r.ContentRef(job.TagsContent)), append(at, n)
		}
	}
	for from := 0; from < len(refs); from += ReadAtOnce {
		found, err := s.getAll(ctx, refs[from:min(from+ReadAtOnce, len(refs))])
		if err != nil {
			return nil, err
		}
		for n, i := range found {
			labels[at[from+n]] = job.ParseLabels(i)
		}
	}
	return labels, nil
}

// getAll reads up to ReadAtOnce items, one alone by the call that is made for that.
func (s *Store) getAll(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	if len(refs) > 1 {
		return s.table.GetMany(ctx, refs)
	}
	i, err := s.table.Get(ctx, refs[0])
	return []item.Item{i}, err
}

// Payload implements ContentReader.
func (s *Store) Payload(ctx context.Context, r job.Row) ([]byte, error) {
	name := job.PayloadContent(r.PayloadVer)
	switch r.PayloadIn {
	case job.InItem:
		body, err := s.Content(ctx, r.Key, name)
		return []byte(body), err
	case job.InBlob:
		return s.blobs.Get(ctx, r.BlobKey(name))
	}
	if r.Payload == "" {
		return nil, nil
	}
	return []byte(r.Payload), nil
}

// PutPayload implements ContentWriter.
func (s *Store) PutPayload(ctx context.Context, r job.Row, payload []byte) error {
	name := job.PayloadContent(r.PayloadVer)
	switch r.PayloadIn {
	case job.InItem:
		return s.Put(ctx, r.PutContent(name, string(payload)))
	case job.InBlob:
		return s.blobs.Put(ctx, r.BlobKey(name), payload)
	}
	return nil
}

// Content reads a sibling item of a job. An absent one is a fault.NotFound.
func (s *Store) Content(ctx context.Context, k job.Key, name string) (string, error) {
	i, err := s.table.Get(ctx, k.ContentRef(name))
	if err != nil {
		return "", err
	}
	if i == nil {
		return "", fault.New(fault.NotFound, nil, "reading %s of job %s", name, k.ID)
	}
	return i.Str("body"), nil
}

// Result implements ContentReader.
func (s *Store) Result(ctx context.Context, r job.Row) (string, error) {
	switch r.ResultIn {
	case job.InItem:
		return s.Content(ctx, r.Key, job.ResultContent)
	case job.InBlob:
		body, err := s.blobs.Get(ctx, r.BlobKey(job.ResultObject(r.ResultRef)))
		return string(body), err
	}
	return r.Result, nil
}

// PutResult implements ResultWriter.
func (s *Store) PutResult(ctx context.Context, k job.Key, ref string, result []byte) error {
	return s.blobs.Put(ctx, k.BlobKey(job.ResultObject(ref)), result)
}

// CopyResult implements ContentWriter.
func (s *Store) CopyResult(ctx context.Context, from job.Row, to *job.Row) ([]item.Write, error) {
	result, err := s.Result(ctx, from)
	if err != nil {
		return nil, err
	}
	to.Result, to.ResultIn, to.ResultRef, to.Partial = from.Result, from.ResultIn, from.ResultRef, from.Partial
	switch to.ResultIn {
	case job.InItem:
		return []item.Write{to.PutContent(job.ResultContent, result)}, nil
	case job.InBlob:
		return nil, s.PutResult(ctx, to.Key, to.ResultRef, []byte(result))
	}
	return nil, nil
}

// SchedulePayload implements ScheduleReader.
func (s *Store) SchedulePayload(ctx context.Context, c schedule.Schedule) ([]byte, error) {
	switch t := c.Template; t.PayloadIn {
	case job.InItem:
		i, err := s.table.Get(ctx, c.PayloadHashRef(t.PayloadHash))
		if err != nil {
			return nil, err
		}
		if i == nil {
			return nil, fault.New(fault.NotFound, nil, "reading the payload of schedule %q", c.Name)
		}
		return []byte(i.Str("body")), nil
	case job.InBlob:
		return s.blobs.Get(ctx, c.PayloadBlob(t.PayloadHash))
	default:
		if t.Payload == "" {
			return nil, nil
		}
		return []byte(t.Payload), nil
	}
}

// PutSchedulePayload implements ScheduleWriter.
func (s *Store) PutSchedulePayload(ctx context.Context, c schedule.Schedule, payload []byte) error {
	switch t := c.Template; t.PayloadIn {
	case job.InItem:
		ref := c.PayloadHashRef(t.PayloadHash)
		return s.Put(ctx, item.Write{Ref: ref, Name: WriteSchedulePayload, Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(payload),
		}})
	case job.InBlob:
		return s.blobs.Put(ctx, c.PayloadBlob(t.PayloadHash), payload)
	}
	return nil
}

// ForgetReplaced implements ScheduleWriter.
func (s *Store) ForgetReplaced(ctx context.Context, old, after schedule.Schedule) error {
	if !schedule.Replaced(old, after) || old.Template.PayloadIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, old.PayloadBlob(old.Template.PayloadHash))
}

// KeepJob implements JobWriter.
func (s *Store) KeepJob(ctx context.Context, k job.Key, until time.Time) error {
	first := k.ContentRef("")
	// The end of the range: '$' follows '#'.
	q := item.Query{Table: contract.Jobs, PK: first.PK, From: first.SK, To: string(k.ID) + "$", Consistent: true}
	var refs []item.Ref
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("keeping job %s: %w", k.ID, err)
		}
		for _, i := range page.Items {
			if i.Int(contract.AttrExpiresAt) < until.Unix() {
				refs = append(refs, item.Ref{Table: contract.Jobs, PK: first.PK, SK: i.Str(contract.AttrJobID)})
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	writes, err := s.keepLogs(ctx, k, until)
	if err != nil {
		return fmt.Errorf("keeping job %s: %w", k.ID, err)
	}
	writes = append(writes, job.KeepClaim(k, until))
	for _, ref := range refs {
		writes = append(writes, job.KeepContent(ref, until))
	}
	writes = append(writes, job.KeepRow(k, until))
	for _, w := range writes {
		if err := s.Put(ctx, w); err != nil && Refused(err) == nil {
			return fmt.Errorf("keeping job %s: %w", k.ID, err)
		}
	}
	return nil
}

// ForgetPayload implements ContentWriter.
func (s *Store) ForgetPayload(ctx context.Context, r job.Row) error {
	if r.PayloadIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, r.BlobKey(job.PayloadContent(r.PayloadVer)))
}

// forgetResult deletes the result that a row names in the bucket, where it names one there. An item goes with the row.
func (s *Store) forgetResult(ctx context.Context, r job.Row) error {
	if r.ResultIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, r.BlobKey(job.ResultObject(r.ResultRef)))
}

// ForgetContents implements ContentWriter.
func (s *Store) ForgetContents(ctx context.Context, r job.Row) error {
	errs := append(s.forgetLogs(ctx, r), s.ForgetPayload(ctx, r), s.forgetResult(ctx, r))
	first := r.ContentRef("")
	// The end of the range: '$' follows '#'.
	q := item.Query{Table: contract.Jobs, PK: first.PK, From: first.SK, To: string(r.ID) + "$", Consistent: true}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			errs = append(errs, err)
			break
		}
		for _, i := range page.Items {
			errs = append(errs, s.Put(ctx, item.Write{
				Ref:    item.Ref{Table: contract.Jobs, PK: first.PK, SK: i.Str(contract.AttrJobID)},
				Name:   WriteContentForget,
				Delete: true,
			}))
		}
		if page.Cursor == "" {
			break
		}
		q.Cursor = page.Cursor
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting contents of job %s: %w", r.ID, err)
	}
	return nil
}
