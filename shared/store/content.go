package store

import (
	"context"
	"errors"
	"fmt"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// KeepContents keeps what of a job's contents is not in its row: where the row says, before the row is
// written. It is safe to repeat.
func (s *Store) KeepContents(ctx context.Context, r job.Row, c job.Contents) error {
	if r.PayloadIn == job.InBlob {
		if err := s.PutPayload(ctx, r, c.Payload); err != nil {
			return fmt.Errorf("keeping the payload of job %s: %w", r.ID, err)
		}
	}
	for _, w := range r.PutContents(c) {
		if err := s.Put(ctx, w); err != nil {
			return fmt.Errorf("keeping what lies beside job %s (%s): %w", r.ID, w.Name, err)
		}
	}
	return nil
}

// CopyContents keeps for a new row what lies beside the row that it is made of. It is safe to repeat.
func (s *Store) CopyContents(ctx context.Context, from, to job.Row) (err error) {
	var c job.Contents
	if from.PayloadIn != job.InRow {
		if c.Payload, err = s.Payload(ctx, from); err != nil {
			return err
		}
	}
	if c.Labels, err = s.Labels(ctx, from); err != nil {
		return err
	}
	return s.KeepContents(ctx, to, c)
}

// ScheduleContents reads the contents that each job of a schedule gets.
func (s *Store) ScheduleContents(ctx context.Context, c schedule.Schedule) (job.Contents, error) {
	payload, err := s.SchedulePayload(ctx, c)
	return job.Contents{Payload: payload, Labels: c.Template.Labels}, err
}

// Labels reads a job's labels. Those of a row that says it has none cost nothing; where they should be and
// are not, the error is a fault.NotFound.
func (s *Store) Labels(ctx context.Context, r job.Row) (job.Labels, error) {
	if !r.Tagged {
		return job.Labels{}, nil
	}
	i, err := s.table.Get(ctx, r.ContentRef(job.TagsContent))
	if err != nil {
		return job.Labels{}, err
	}
	if i == nil {
		return job.Labels{}, fault.New(fault.NotFound, nil, "reading the labels of job %s", r.ID)
	}
	return job.ParseLabels(i), nil
}

// Payload reads a job's payload, wherever it is; nil is none.
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

// PutPayload keeps a payload that is not inline where the row says it is. Safe to repeat.
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

// SchedulePayload reads the payload of a schedule's template, wherever it is; nil is none.
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

// PutSchedulePayload keeps the payload of a template that SetPayload has placed, where it is
// not in the template. It comes before the schedule's own write and is safe to repeat.
func (s *Store) PutSchedulePayload(ctx context.Context, c schedule.Schedule, payload []byte) error {
	switch t := c.Template; t.PayloadIn {
	case job.InItem:
		ref := c.PayloadHashRef(t.PayloadHash)
		return s.Put(ctx, item.Write{Ref: ref, Name: "schedule.payload", Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(payload),
		}})
	case job.InBlob:
		return s.blobs.Put(ctx, c.PayloadBlob(t.PayloadHash), payload)
	}
	return nil
}

// ForgetReplaced deletes the blob of a payload that a write of the schedule has replaced; one in
// an item went with the write. It comes after the write and is safe to repeat. What is never got
// to stays: the bucket lets no payload of a schedule go by itself.
func (s *Store) ForgetReplaced(ctx context.Context, old, after schedule.Schedule) error {
	if !schedule.Replaced(old, after) || old.Template.PayloadIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, old.PayloadBlob(old.Template.PayloadHash))
}

// ForgetPayload deletes the payload that a row names in the bucket, where it names one there. An
// item goes with the row.
func (s *Store) ForgetPayload(ctx context.Context, r job.Row) error {
	if r.PayloadIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, r.BlobKey(job.PayloadContent(r.PayloadVer)))
}

// ForgetContents deletes what lies beside the row of a job that has just been forgotten:
// payload, result, labels, attempts. It is safe to repeat; what a failure leaves goes with its
// own time to live.
func (s *Store) ForgetContents(ctx context.Context, r job.Row) error {
	errs := []error{s.ForgetPayload(ctx, r)}
	first := r.ContentRef("")
	q := item.Query{Table: contract.Jobs, PK: first.PK, From: first.SK, To: string(r.ID) + "$", Consistent: true} // '$' follows '#'
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			errs = append(errs, err)
			break
		}
		for _, i := range page.Items {
			errs = append(errs, s.Put(ctx, item.Write{
				Ref: item.Ref{Table: contract.Jobs, PK: first.PK, SK: i.Str(contract.AttrJobID)}, Name: "content.forget", Delete: true,
			}))
		}
		if page.Cursor == "" {
			break
		}
		q.Cursor = page.Cursor
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting what lay beside job %s: %w", r.ID, err)
	}
	return nil
}
