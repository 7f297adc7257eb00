package account

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// fact is what only AWS can show.
type fact struct {
	name  string // alone in the report
	needs string // what the code needs of it
	// observe returns what is seen, and whether that is what the code needs; nil: nothing can look, and
	// where says who knows.
	observe func(ctx context.Context, p *probe) (seen string, holds bool, err error)
	where   string
}

// facts are those that documents leave open, in the order of the report.
var facts = []fact{
	{name: "seconds of at()", needs: "a timer fires at most two minutes late, for it is two minutes early",
		observe: atSeconds},
	{name: "at() in the past", needs: "it is refused, or fires at once", observe: atPast},
	{name: "a client token used again", needs: "the same request again is no error while a call is tried again",
		observe: clientToken},
	{name: "deletion after a timer fired", needs: "the name is free again within an hour", observe: deletion},
	{name: "a universal target with a delay", needs: "nothing: timers send to a queue by its own target",
		observe: universal},
	{name: "a universal target with a batch", needs: "nothing: timers send to a queue by its own target",
		observe: universalBatch},
	{name: "accuracy of a queue's delay", observe: delays,
		needs: "half the messages are there within a second of their delay, and none is early by a second"},
	{name: "timers into an encrypted queue", needs: "Scheduler's role may use the key: such jobs run on time",
		where: "the lateness of jobs by timers, above"},
	{name: "writes to a table with a stream", needs: "the rate that the target promises",
		where: "aws service-quotas list-service-quotas --service-code dynamodb"},
	{name: "price of fair queues", needs: "that of any request", where: billed("Amazon Simple Queue Service")},
	{name: "price of warm throughput", needs: "none: the targets set none", where: billed("Amazon DynamoDB")},
	{name: "price of composite alarms", needs: "none: each alarm tells by itself", where: billed("AmazonCloudWatch")},
	{name: "price of Application Signals", needs: "none: it is off", where: billed("AmazonCloudWatch")},
	{name: "price of Step Functions' first and last transition", needs: "none: it is only compared with",
		where: billed("AWS Step Functions")},
	{name: "Pod Identity on Fargate", needs: "none: pods run on machines", where: "nothing of ours runs on Fargate"},
}

// billed is the command that shows what a service cost, a day later.
func billed(service string) string {
	return "tomorrow: aws ce get-cost-and-usage --granularity DAILY --metrics UnblendedCost " +
		"--group-by Type=DIMENSION,Key=USAGE_TYPE " +
		"--time-period Start=$(date -u -d yesterday +%F),End=$(date -u +%F) --filter " +
		`'{"Dimensions":{"Key":"SERVICE","Values":["` + service + `"]}}'`
}

// verdict is a line of the report.
type verdict struct {
	fact
	seen    string
	holds   bool
	checked bool
	err     error
}

// check looks at a fact. Nothing that an emulator does says anything of AWS.
func check(ctx context.Context, f fact, p *probe) verdict {
	v := verdict{fact: f}
	if f.observe == nil {
		return v
	}
	v.seen, v.holds, v.err = f.observe(ctx, p)
	v.checked = !p.emulated && v.err == nil
	return v
}

func (v verdict) String() string {
	switch {
	case v.observe == nil:
		return fmt.Sprintf("%s: not judged; %s", v.name, v.where)
	case v.err != nil:
		return fmt.Sprintf("%s: not judged; %v", v.name, v.err)
	case !v.checked:
		return fmt.Sprintf("%s: not judged; the emulator: %s", v.name, v.seen)
	case v.holds:
		return fmt.Sprintf("%s: holds; %s", v.name, v.seen)
	}
	return fmt.Sprintf("%s: DOES NOT HOLD; %s; the code needs: %s", v.name, v.seen, v.needs)
}

// checkAll looks at all facts at the same time: most of it is waiting.
func checkAll(ctx context.Context, all []fact, p *probe) []verdict {
	verdicts := make([]verdict, len(all))
	var checking sync.WaitGroup
	for i, f := range all {
		checking.Go(func() { verdicts[i] = check(ctx, f, p) })
	}
	checking.Wait()
	return verdicts
}

// report is one line for each fact.
func report(all []verdict) string {
	var b strings.Builder
	checked := 0
	for _, v := range all {
		if v.checked {
			checked++
		}
		fmt.Fprintln(&b, v)
	}
	fmt.Fprintf(&b, "%d of %d facts were judged\n", checked, len(all))
	return b.String()
}
