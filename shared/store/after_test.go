package store_test

import (
	"context"
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/store"
)

func TestFollow_TellsOfAnEndOrWillBeTold(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Now()
	w := memory.New(memory.Options{EmptyPages: true})
	defer w.Close()
	s := store.New(w.Table(), w.Blobs())
	put := func(n int, change ...func(*job.Row)) job.Key {
		r := jobtest.Row(n, now, now, change...)
		if err := s.Put(ctx, job.Accept(r)); err != nil {
			t.Fatal(err)
		}
		return r.Key
	}
	open, over := put(1), put(2, func(r *job.Row) { r.Status = job.Skipped })
	gone := put(3, func(r *job.Row) { r.Status = job.Expired })
	row, err := s.Row(ctx, gone)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ctx, job.Forget(row, now)); err != nil {
		t.Fatal(err)
	}
	child := jobtest.Key(9)
	for k, want := range map[job.Key]job.Status{
		open: "", over: job.Skipped, gone: job.Expired, jobtest.Key(4): job.Cancelled,
	} {
		for range 2 {
			if got, err := s.Follow(ctx, k, child, now); err != nil || got.Status != want || want != "" &&
				got.Key != k {
				t.Errorf("following %s: %s %s, %v; want %s", k.ID, got.ID, got.Status, err, want)
			}
		}
	}
	if r, err := s.Row(ctx, open); err != nil || !r.Followed || !r.HasChildren() {
		t.Errorf("it is followed %v, %v", r.Followed, err)
	}
	if got, err := s.Followers(ctx, open); err != nil || len(got) != 1 || got[0] != child {
		t.Errorf("followers %v, %v", got, err)
	}
	if err := s.Unfollow(ctx, open, child); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Followers(ctx, open); err != nil || len(got) != 0 {
		t.Errorf("followers %v are left, %v", got, err)
	}
}
