package usage

import (
	"time"

	"punctual/shared/job"
	"punctual/shared/price"
)

// Use is what jobs used.
type Use struct {
	Jobs      int64 // that have ended
	Attempts  int64 // that have started and ended
	RunningMS int64 // of those attempts
	Bytes     int64 // of the rows of ended jobs, with their payloads
	Requests  int64 // that made or changed those jobs, each job of a batch as one
}

// Add adds what other jobs used.
func (u *Use) Add(more Use) {
	for _, f := range fields {
		*f.of(u) += *f.of(&more)
	}
}

// fields are the attributes of an item, each before the value that it counts for. Attempts and requests are kept as
// those beyond one for each job: most values then have three attributes, and an item is smaller.
var fields = []struct {
	name string
	of   func(*Use) *int64
}{
	{"j", func(u *Use) *int64 { return &u.Jobs }},
	{"x", func(u *Use) *int64 { return &u.Attempts }},
	{"r", func(u *Use) *int64 { return &u.RunningMS }},
	{"b", func(u *Use) *int64 { return &u.Bytes }},
	{"y", func(u *Use) *int64 { return &u.Requests }},
}

// beyondJobs returns u with the attempts and requests beyond one for each job.
func (u Use) beyondJobs() Use {
	u.Attempts, u.Requests = u.Attempts-u.Jobs, u.Requests-u.Jobs
	return u
}

// withJobs reverses beyondJobs.
func (u Use) withJobs() Use {
	u.Attempts, u.Requests = u.Attempts+u.Jobs, u.Requests+u.Jobs
	return u
}

const (
	gigabyte = 1 << 30
	kilobyte = 1 << 10
	// ownRow is about what a row has without its payload, which a job takes in any case.
	ownRow = kilobyte
	// monthsKept is how long an ended job is stored.
	monthsKept = 1
)

// Dollars estimates what that costs: what a job takes for each attempt, or once without one, its requests, its time
// on a machine whose slots are full, and its bytes for as long as a job is kept.
func (u Use) Dollars() float64 {
	runs, hours := float64(max(u.Jobs, u.Attempts)), float64(u.RunningMS)/float64(time.Hour/time.Millisecond)
	written := float64(max(0, u.Bytes-ownRow*u.Jobs)) / kilobyte
	return runs*(price.Job.Dollars()+price.Functions(0)) +
		float64(u.Requests)*(price.APIRequest+price.Functions(1)-price.Functions(0)) +
		hours*(price.Hour.Dollars()+price.Machine*price.AutoMode/price.Slots) +
		written*(price.WriteUnit+price.ReadUnit) +
		float64(u.Bytes)/gigabyte*price.StoredGigabyte*monthsKept
}

// At is what a change of a job used, and when.
type At struct {
	Time time.Time
	Use  Use
}

// Of returns what a change of a row used, where the row is that of a job; before is the zero Row if there was none.
func Of(before, after job.Row) (all []At) {
	if !after.Kind().IsJob() || after.Heartbeat() {
		return nil
	}
	for _, a := range after.AttemptsSince(before) {
		if !a.StartedAt.IsZero() && !a.FinishedAt.IsZero() {
			ran := a.FinishedAt.Sub(a.StartedAt).Milliseconds()
			all = append(all, At{a.FinishedAt, Use{Attempts: 1, RunningMS: max(0, ran)}})
		}
	}
	if !after.Status.Final() || before.Status.Final() {
		return all
	}
	bytes := int64(after.Size())
	if after.PayloadIn != job.InRow {
		bytes += after.PayloadSize
	}
	requests := max(0, after.Version-1) // each edit is one
	if after.Schedule() == "" && !after.InRun() || after.Manual() {
		requests++
	}
	return append(all, At{after.FinishedAt, Use{Jobs: 1, Bytes: bytes, Requests: requests}})
}
