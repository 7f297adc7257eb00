package store

import (
	"context"
	"errors"
	"fmt"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// ForgetContents deletes what lies beside the row of a job that has just been forgotten:
// payload, result, tags, attempts. It is safe to repeat; what a failure leaves goes with its
// own time to live.
func (s *Store) ForgetContents(ctx context.Context, r job.Row) error {
	var errs []error
	if r.PayloadIn == job.InBlob {
		errs = append(errs, s.blobs.Delete(ctx, r.BlobKey(job.PayloadContent(r.PayloadVer))))
	}
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
