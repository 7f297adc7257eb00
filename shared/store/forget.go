package store

import (
	"context"
	"errors"
	"fmt"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// ForgetPayload deletes the payload that a row names in the bucket, where it names one there. An
// item goes with the row.
func (s *Store) ForgetPayload(ctx context.Context, r job.Row) error {
	if r.PayloadIn != job.InBlob {
		return nil
	}
	return s.blobs.Delete(ctx, r.BlobKey(job.PayloadContent(r.PayloadVer)))
}

// ForgetContents deletes what lies beside the row of a job that has just been forgotten:
// payload, result, tags, attempts. It is safe to repeat; what a failure leaves goes with its
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
