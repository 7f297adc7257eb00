package quota

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"punctual/infra/target"
)

// Source reads what an account is allowed in a region, and what it has.
type Source interface {
	// Value returns the applied value of a quota, by AWS's codes.
	Value(ctx context.Context, service, code string) (float64, error)
	// Code returns the code of the quota with a name like that, for those that AWS documents by name.
	Code(ctx context.Context, service string, name *regexp.Regexp) (string, error)
	// Used returns how many of a kind there are in the region, but for those of a stack.
	Used(ctx context.Context, k kind, but string) (int, error)
	// Zones returns the zones in which a stack has subnets, sorted.
	Zones(ctx context.Context, stack string) ([]string, error)
}

// need is how much of a quota a deployment takes.
type need struct {
	service, code string
	name          *regexp.Regexp // of the quota, where its code is not known
	used          kind           // what others may hold already; "": nothing
	what          string         // completes "the account is allowed 5 …"
	least         float64        // to deploy and to run idle
	ask           float64        // to run at its most
	short         string         // what happens with less
}

// concurrency is the code of how many invocations of functions may run at once.
const concurrency = "L-B99A9384"

// armings is how many timers are made a second: by five processes at once, each of which limits itself to 50. It is the
// smallest default of a region.
const armings = 250

// Schedule groups have a quota of their own, named alike.
var (
	createRate     = regexp.MustCompile(`(?i)^CreateSchedule\b`)
	invocationRate = regexp.MustCompile(`(?i)^Invocations?\b`)
)

func needs(s target.Settings) []need {
	var cores, most int
	for _, p := range s.Fleet.Pools() {
		cores += p.Least * p.Milli
		most += p.Most * p.Milli
	}
	calls := 10.0
	if reserved := s.Flow.Reserved(); reserved > 0 {
		calls = float64(reserved + target.LeastUnreserved)
	}
	shards := float64(s.Shards) // each has a timer of the same minute, which may fire in the same second
	return []need{
		{service: "lambda", code: concurrency, what: "invocations of functions at once", least: calls,
			ask: max(1000, calls), short: "what is reserved for functions is cut to what there is"},
		{service: "scheduler", name: createRate, what: "timers made a second", least: armings, ask: 1000,
			short: "jobs due in more than 14 minutes wait for the sweeper when many come at once"},
		{service: "scheduler", name: invocationRate, what: "timers fired a second", least: shards,
			ask: max(500, shards), short: "jobs due in more than 14 minutes start late when many slices have some"},
		{service: "ec2", code: "L-1216C47A", what: "cores of on-demand machines", least: float64(cores/1000 + 2),
			ask: float64(
				most/1000 + 2,
			), short: "workers wait for machines, and a first deploy of the fleet fails: the scaler's " +
				"chart waits ten minutes for its pods"},
		{service: "ec2", code: "L-0263D0A3", used: addresses,
			what: "addresses for NAT gateways, in all networks together", least: float64(s.Fleet.NATs), ask: 5,
			short: "the fleet fails to deploy"},
		{service: "vpc", code: "L-F678F1CE", used: networks, what: "networks", least: 1, ask: 5,
			short: "the fleet fails to deploy"},
		{service: "eks", code: "L-1194D53C", used: clusters, what: "clusters", least: 1, ask: 10,
			short: "the fleet fails to deploy"},
	}
}

// Report is what Read has found.
type Report struct {
	Concurrency int      // invocations at once; 0: not known
	Says        []string // sentences for the person who deploys; none: all quotas are large enough
}

// found is what a quota allows, and how much of it others hold.
type found struct {
	need
	allowed float64
	held    int
	err     error // the quota is not known
	unseen  error // what others hold is not known
}

func find(ctx context.Context, n need, but string, from Source) found {
	f := found{need: n}
	if n.name != nil {
		if f.code, f.err = from.Code(ctx, n.service, n.name); f.err != nil {
			return f
		}
	}
	f.allowed, f.err = from.Value(ctx, n.service, f.code)
	if n.used != "" && f.err == nil {
		f.held, f.unseen = from.Used(ctx, n.used, but)
	}
	return f
}

// lacks reports whether the account is allowed less than is needed, in a sentence and a command.
func (f found) lacks(s target.Settings) (says, ask string) {
	wants := f.least + float64(f.held)
	if f.err != nil || f.allowed >= wants {
		return "", ""
	}
	held := ""
	if f.held > 0 {
		held = fmt.Sprintf(", others hold %d,", f.held)
	}
	return fmt.Sprintf("%g %s%s and %s wants %g: until there are more, %s", f.allowed, f.what, held, s.Target, f.least,
			f.short),
		fmt.Sprintf("aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s "+
			"--desired-value %g", s.Region, f.service, f.code, max(f.ask, wants))
}

// Read compares the needs of a deployment with its account. What is too small is one sentence of
// several lines: what is short, and then the commands that ask for more.
func Read(ctx context.Context, s target.Settings, from Source) Report {
	all := needs(s)
	results := make([]found, len(all))
	var asking sync.WaitGroup
	for i, n := range all {
		asking.Go(func() { results[i] = find(ctx, n, s.Prefix+"-fleet", from) })
	}
	asking.Wait()
	var r Report
	var short, asks []string
	var unread error
	for _, f := range results {
		if unread == nil {
			unread = cmp.Or(f.err, f.unseen)
		}
		if says, ask := f.lacks(s); says != "" {
			short, asks = append(short, says), append(asks, ask)
		}
		if f.code == concurrency && f.err == nil {
			r.Concurrency = int(f.allowed)
		}
	}
	if unread != nil {
		r.Says = append(r.Says, fmt.Sprintf("quotas could not be read, and are taken to be large enough: %v", unread))
	}
	if len(short) > 0 {
		r.Says = append(r.Says, fmt.Sprintf("in %s the account is allowed\n  %s\nAsk for more by\n  %s", s.Region,
			strings.Join(short, "\n  "), strings.Join(asks, "\n  ")))
	}
	return r
}
