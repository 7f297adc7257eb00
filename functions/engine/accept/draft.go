package accept

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"punctual/shared/dag"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

// Draft is a job before it is accepted; it has no id yet.
type Draft struct {
	Row      job.Row
	After    *dag.After // nil: it waits for no job
	When     When
	Payload  []byte // compact JSON; nil for none
	Labels   job.Labels
	Literals []string // pointers of the strings that were declared to be no secrets
	By       string   // subject that corrects a redrive; "" for any other draft
}

// When is the time that a request asks for: one of its two, or none. The row's due time is computed from it.
type When struct {
	NotBefore time.Time
	Delay     time.Duration
}

// Due is the time that it means for a request that was read at now.
func (w When) Due(now time.Time) time.Time {
	if w.NotBefore.IsZero() {
		return now.Add(w.Delay)
	}
	return w.NotBefore
}

// Contents returns what the job holds, declared by that subject.
func (d *Draft) Contents(by string) job.Contents {
	return job.Contents{Payload: d.Payload, Labels: d.Labels, Literals: LiteralsBy(by, d.Literals)}
}

// LiteralsBy returns the declaration of these literals; nil for none.
func LiteralsBy(by string, pointers []string) *job.Literals {
	if len(pointers) == 0 {
		return nil
	}
	return &job.Literals{Pointers: pointers, By: by}
}

// LogLiterals logs that contents which were just written declare strings to be no secrets.
func (a *Acceptor) LogLiterals(ctx context.Context, r job.Row, c job.Contents) {
	if c.Literals != nil {
		a.Log.InfoContext(ctx, "a job declared literals to be no secrets",
			telemetry.Tenant, r.Tenant, telemetry.JobID, r.ID, "literals", len(c.Literals.Pointers))
	}
}

// Entropy makes a reader safe for concurrent use.
type Entropy struct {
	mu sync.Mutex
	R  io.Reader
}

// Next returns the random part of a new id.
func (e *Entropy) Next() (b [10]byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err = io.ReadFull(e.R, b[:]); err != nil {
		err = fmt.Errorf("reading entropy for a job id: %w", err)
	}
	return b, err
}

// SendTimeout bounds the sends after something was written for a request, because the client still waits for the
// answer.
const SendTimeout = 5 * time.Second

// FireNow sends firings of jobs that are due now, also if the request has just ended. A failure is only logged: the
// jobs are accepted, and the due index brings them.
func (a *Acceptor) FireNow(ctx context.Context, firings ...job.Firing) {
	if len(firings) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SendTimeout)
	defer cancel()
	a.Fire(ctx, string(horizon.Now), firings...)
}
