package system

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"punctual/shared/clock"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
	"punctual/workers/worker"
)

// Stream is the jobs table's stream, as one reader sees it.
type Stream interface {
	// Stream returns up to max changes after a record ("" for the oldest) and waits up to wait for
	// one.
	Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error)
}

// Search is the index of jobs.
type Search interface {
	store.SearchReader
	store.SearchWriter
}

// Ports is everything that the system needs from outside.
type Ports struct {
	Table     store.Table
	Blobs     store.Blobs
	Stream    Stream
	Queues    message.Queues
	Timers    message.Timers
	Search    Search           // nil: jobs are not indexed, and found by the filters of their list only
	Secrets   executor.Secrets // nil: payloads that name secrets fail for good
	Executors executor.Options // what else jobs reach in an account; Compose sets the rest
	Clock     clock.Clock
	Log       func(stage string) *slog.Logger
	Meter     *telemetry.Meter
	// Of returns the ports of each stage, and of "source", which feeds the stages; in AWS each of
	// them is a process. Nil: all share these ports.
	Of func(stage string) Ports
}

func (p Ports) of(stage string) Ports {
	if p.Of == nil {
		return p
	}
	return p.Of(stage)
}

// Options configure the system; the zero Options are the defaults of the parts.
type Options struct {
	Shards int // of the due index; 0: contract.DefaultShards
	Pumps  int // pollers of the report queue; 0: 2
	// Deadlines is how often the sweeper also looks for deadlines that have passed; 0: only in its passes.
	Deadlines time.Duration
	// Stats is how often the counts of what became of jobs are added to the table; 0: there are none.
	Stats     time.Duration
	UsageTags []string // names of the tags by which it is counted what jobs used
	Webhooks  bool     // events are announced to webhooks
	HTTPAllow []netip.Prefix
	OwnPorts  []uint16
	NoSignIn  bool // the API needs no token
	Registry  *worker.Registry
	Worker    worker.Options
	NoWorker  bool // the worker is another process
	NoAPI     bool // the API is another process
	// Heartbeats are the pools that run an empty job of each priority each minute; nil for none.
	Heartbeats []string
	Alone      bool // no other process of the deployment runs: what is due at the start is taken up at once
	// Unready returns why the API should be sent no requests, "" for no reason; nil: there never is one.
	Unready func() string
}
