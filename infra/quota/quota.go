package quota

import (
	"context"
	"fmt"
	"sync"

	"punctual/infra/target"
)

// Source reads what an account is allowed in a region. It errs where it cannot say.
type Source interface {
	// Value returns the applied value of a quota, by AWS's codes.
	Value(ctx context.Context, service, code string) (float64, error)
}

// need is how much of a quota a deployment takes.
type need struct {
	service, code string
	what          string  // completes "the account is allowed 5 …"
	least         float64 // to deploy and to run idle
	ask           float64 // to run at its most
	short         string  // what happens until then
}

// concurrency is the code of how many invocations of functions may run at once.
const concurrency = "L-B99A9384"

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
	return []need{
		{"lambda", concurrency, "invocations of functions at once", calls, max(1000, calls), "what is reserved for functions is cut to what there is"},
		{"ec2", "L-1216C47A", "cores of on-demand machines", float64(cores/1000 + 2), float64(most/1000 + 2),
			"workers wait for machines"},
		{"ec2", "L-0263D0A3", "addresses for NAT gateways, in all networks together", float64(s.Fleet.NATs), 5,
			"the fleet fails to deploy where others hold them"},
		{"vpc", "L-F678F1CE", "networks", 1, 5, "the fleet fails to deploy where others hold them"},
		{"eks", "L-1194D53C", "clusters", 1, 10, "the fleet fails to deploy"},
	}
}

// Report is what was found out of an account.
type Report struct {
	Concurrency int      // invocations at once; 0: not known
	Says        []string // sentences for whoever deploys; none: all is large enough
}

// Read compares the needs of a deployment with its account.
func Read(ctx context.Context, s target.Settings, from Source) Report {
	all := needs(s)
	values, errs := make([]float64, len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	for i, n := range all {
		asking.Go(func() { values[i], errs[i] = from.Value(ctx, n.service, n.code) })
	}
	asking.Wait()
	var r Report
	unread := 0
	for i, n := range all {
		switch {
		case errs[i] != nil:
			if unread++; unread == 1 {
				r.Says = append(r.Says, fmt.Sprintf("quotas could not be read, and are taken to be large enough: %v", errs[i]))
			}
		case values[i] < n.least:
			r.Says = append(r.Says, fmt.Sprintf("the account is allowed %g %s in %s, and %s wants %g: until then, %s. Ask by: "+
				"aws service-quotas request-service-quota-increase --region %s --service-code %s --quota-code %s "+
				"--desired-value %g", values[i], n.what, s.Region, s.Target, n.least, n.short, s.Region, n.service, n.code, n.ask))
		}
		if n.code == concurrency && errs[i] == nil {
			r.Concurrency = int(values[i])
		}
	}
	return r
}
