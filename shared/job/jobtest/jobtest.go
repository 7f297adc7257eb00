package jobtest

import (
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// Tenant owns every job made here.
const Tenant = "acme"

// Key is the key of job number n.
func Key(n int) job.Key {
	at := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	return job.Key{Tenant: Tenant, ID: job.DeterministicID(at, "jobtest", strconv.Itoa(n))}
}

// Row is job number n as it is after it was accepted now: waiting for its due time, with
// its wake-up, in shard n mod 4. Changes come before it is placed.
func Row(n int, due, now time.Time, change ...func(*job.Row)) job.Row {
	now, due = now.UTC().Truncate(time.Millisecond), due.UTC().Truncate(time.Millisecond)
	r := job.Row{
		Key: Key(n), Status: job.Scheduled, Version: 1, Attempt: 1, DueAt: due, CreatedAt: now,
		Settings: job.Settings{
			Task: "echo", Executor: job.ExecutorEcho, Pool: contract.DefaultPool, Priority: job.Normal,
			Timeout: contract.DefaultTimeout, Retry: job.DefaultRetry,
		},
		WakeUp: job.WakeUp{Shard: n % 4},
	}
	for _, f := range change {
		f(&r)
	}
	if r.Status == job.Scheduled && r.WakeAt.IsZero() {
		job.Route(&r, now)
	}
	return r
}
