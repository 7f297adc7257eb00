package redrive_test

import (
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/job/jobtest"
)

// A dead letter that an operator moves back while another job holds the unique key of its job goes to the DLQ once
// more, and is redriven when the key is free.
func TestRedrive_ReturnsADeadLetterWhoseUniqueKeyIsHeld(t *testing.T) {
	t.Parallel()
	bubble(t, "until the key is free", func(b *bench) {
		keyed := func(r *job.Row) {
			r.Unique = job.Unique{Key: "k", Until: job.UntilDone, OnConflict: job.ConflictReturn}
		}
		holder := b.Put(jobtest.Row(2, time.Now().Add(time.Hour), time.Now(), keyed))
		b.Write(job.TakeKey(holder, "", time.Now()))
		dead := b.dead(1, keyed)
		b.send(dead)
		b.drain()
		time.Sleep(time.Minute)
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 1, 0)
		if is := b.Row(dead.Key); is.RedrivenBy != "" {
			b.Fatalf("it was redriven as %s", is.RedrivenBy)
		}
		_, w := job.Skip(holder, job.Reason{Code: job.CodeLimitFull}, time.Now())
		b.Write(w)
		b.redriveToSource()
		b.drain()
		b.requireDepths(0, 0, 1)
		if is := b.Row(dead.Key); is.RedrivenBy == "" {
			b.Error("it was not redriven once the key was free")
		}
	})
}
