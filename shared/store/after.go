package store

import (
	"context"
	"time"

	"punctual/shared/job"
)

// Follow implements Followers.
func (s *Store) Follow(ctx context.Context, parent, child job.Key, now time.Time) (over job.Row, err error) {
	if err := s.Put(ctx, job.PutFollower(parent, child, now)); err != nil {
		return job.Row{}, err
	}
	err = s.Put(ctx, job.Follow(parent))
	refused := Refused(err)
	if refused == nil {
		return job.Row{}, err
	}
	i := refused.Olds[0]
	if i == nil { // it was there a moment ago, and nothing says how it ended: it counts as failed
		return job.Row{Key: parent, Status: job.Cancelled}, nil
	}
	return job.ParseNode(parent, i)
}

// Followers implements Followers.
func (s *Store) Followers(ctx context.Context, parent job.Key) ([]job.Key, error) {
	q := parent.Followers(ReadAtOnce)
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		var children []job.Key
		for _, i := range page.Items {
			child, err := job.FollowerOf(parent, i)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
		if q.Cursor = page.Cursor; len(children) > 0 || q.Cursor == "" {
			return children, nil
		}
	}
}

// Unfollow implements Followers.
func (s *Store) Unfollow(ctx context.Context, parent, child job.Key) error {
	return s.Put(ctx, job.DeleteFollower(parent, child))
}
