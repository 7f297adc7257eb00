package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/schedule"
	"punctual/shared/schema"
	"punctual/shared/span"
)

var update = flag.Bool("update", false, "write shared/docs/limits.md anew")

const limitsPage = "shared/docs/limits.md"

type row struct{ what, limit string }

type table struct {
	title string
	rows  []row
}

// n is a number with commas between thousands.
func n(v int) string {
	text := strconv.Itoa(v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// size is a number of bytes.
func size(bytes int) string {
	switch {
	case bytes%(1<<20) == 0:
		return n(bytes>>20) + " MiB"
	case bytes%(1<<10) == 0:
		return n(bytes>>10) + " KiB"
	}
	return n(bytes) + " bytes"
}

// of is a length of time, in days and hours where it is whole ones.
func of(d time.Duration) string { return span.Format(d) }

func between(least, most time.Duration) string { return of(least) + " to " + of(most) }

// limits are the tables of the page, in order.
func limits() []table {
	retry := job.DefaultRetry
	return []table{
		{"Jobs", []row{
			{"payload", size(contract.MaxPayload) + " of JSON, " + n(contract.MaxDepth) + " levels deep"},
			{"jobs of a batch", n(contract.MaxBatchJobs) + ", together " + size(contract.MaxBatchBody) + " of JSON"},
			{"body of another request", size(contract.MaxBody)},
			{"`run_at` in the past", of(contract.PastAllowed) + "; older is refused"},
			{"`run_at` or `delay` ahead", "2 years (" + of(contract.MaxAhead) + ")"},
			{"`after`: jobs that one may wait for", n(contract.MaxAfter)},
			{"`timeout` of an attempt", between(contract.MinTimeout, contract.MaxTimeout) + ", in pool `long` to " +
				of(contract.MaxTimeoutLong) + "; " + of(contract.DefaultTimeout) + " unless said"},
			{"`start_within`, `expire_after`", between(contract.MinWindow, contract.MaxWindow)},
			{"`retry.max_attempts`", "1 to " + n(contract.MaxAttempts) + "; " + n(retry.MaxAttempts) + " unless said"},
			{"`retry.initial_delay`", "to " + of(contract.MaxInitialDelay) + "; " + of(retry.InitialDelay) + " unless said"},
			{"`retry.factor`", fmt.Sprintf("1 to %g; %g unless said", contract.MaxFactor, retry.Factor)},
			{"`retry.max_delay`", "to " + of(contract.MaxRetryDelay) + "; " + of(retry.MaxDelay) + " unless said"},
			{"starts of one attempt whose workers die", n(contract.MaxTakeovers)},
			{"wait that a `Retry-After` may ask for", of(contract.MaxRetryAfter)},
			{"snooze", "from " + of(contract.MinSnooze)},
			{"tags", fmt.Sprintf("%d, names to %d and values to %d characters", contract.MaxTags, contract.MaxTagKey,
				contract.MaxTagValue)},
			{"tags of one filter", fmt.Sprint(contract.MaxSearchTags)},
			{"`metadata`", size(contract.MaxMetadata) + " of compact JSON"},
			{"`Idempotency-Key`", n(contract.MaxIdempotencyKey) + " characters, kept " + of(contract.IdempotencyKept)},
			{"`limits` of work", fmt.Sprintf("%d, with keys to %d characters; an expression for a key to %d",
				contract.MaxJobLimits, contract.MaxLimitKey, contract.MaxLimitTemplate)},
			{"`unique.key`", n(contract.MaxUniqueKey) + " characters"},
			{"`max_running` of a limit of work", "1 to " + n(contract.MaxRunning)},
			{"`rate` of a limit of work", fmt.Sprintf("1 to %s starts in %s, %d a second at most",
				n(contract.MaxRateCount), between(contract.MinRatePer, contract.MaxRatePer),
				contract.MaxRatePerSecond)},
			{"result, or body of an HTTP answer", size(contract.MaxResult) +
				" are kept; of a larger one a preview of " + size(contract.MaxPreview) + " is shown"},
			{"`max_result` of a task", "from " + size(contract.MinMaxResult) + " to " + size(contract.MaxResult)},
			{"results that one expression reads", size(contract.MaxResultsRead) + " together"},
			{"error's message and code", size(contract.MaxErrorMessage) + " and " + size(contract.MaxErrorCode)},
			{"webhooks of a tenant", n(contract.MaxWebhooks)},
			{"message to a queue (executor `sqs`)", n(executor.MaxMessage) + " bytes"},
			{"names of tasks, schedules, dags, nodes", n(contract.MaxName) + " of `a-z A-Z 0-9 _ -`"},
			{"`payload_schema` of a task", size(schema.MaxText)},
			{"reason of a pause", n(contract.MaxReason) + " characters"},
			{"time until a worker must know the task", of(contract.UnknownTaskFor)},
		}},
		{"Schedules", []row{
			{"cron expression", size(calendar.MaxCron)},
			{"`every`", between(calendar.MinEvery, calendar.MaxEvery)},
			{"`dates`", n(calendar.MaxDates)},
			{"`rrule`", size(calendar.MaxRRule) + ", COUNT to " + n(calendar.MaxCount) + ", INTERVAL to " +
				n(calendar.MaxInterval) + ", BYSETPOS to " + n(calendar.MaxSetPos)},
			{"`max_runs`", n(calendar.MaxRuns)},
			{"`calendars`", n(calendar.MaxCalendars) + ", with together as many dates and exclusions as one may have"},
			{"how far ahead the next time is searched", n(calendar.HorizonYears) + " years"},
			{"`spread`", "to " + of(calendar.MaxSpread) + ", and less than the distance of two times"},
			{"exclusions of a tenant", n(contract.MaxExclusions)},
			{"exclusions of a calendar", n(calendar.MaxExclude)},
			{"dates, and ranges, of an exclusion", n(calendar.MaxDates) + ", and " + n(calendar.MaxRanges)},
			{"days that an exclusion moves a run", n(calendar.MaxMoveDays) + "; then it is dropped"},
			{"times a day of a calendar whose exclusion moves", n(calendar.MaxMovedPerDay)},
			{"`catch_up.window`", "to " + of(schedule.MaxCatchUpWindow) + "; " + of(schedule.DefaultCatchUp.Window) +
				" unless said"},
			{"`catch_up.cap`", "to " + n(schedule.MaxCatchUpCap) + "; " + n(schedule.DefaultCatchUp.Cap) + " unless said"},
			{"`catch_up.after`", between(schedule.MinCatchUpAfter, schedule.MaxCatchUpAfter) + "; " +
				of(schedule.DefaultAfter) + " unless said"},
			{"`pause_after_failures`", "to " + n(schedule.MaxPauseAfter)},
			{"times of a backfill", n(operation.MaxTimes) + "; from more than " + of(schedule.LedgerKept) +
				" ago only with `again`"},
			{"`max_running` of a backfill", "1 to " + n(operation.MaxOpen)},
			{"times that backfills make one time", n(schedule.MaxBackfills)},
			{"times of a preview", n(calendar.MaxPreview) + "; " + n(contract.PreviewDefault) + " unless said"},
		}},
		{"Dags", []row{
			{"nodes, and edges", n(dag.MaxNodes) + ", and " + n(dag.MaxEdges)},
			{"items of a `for_each`", n(dag.MaxItems)},
			{"jobs of a run", n(dag.MaxJobs)},
			{"payloads and lists of a run's nodes", size(contract.MaxRunPayloads) +
				" together; a node with less than " + size(contract.BytesOfOneRequest) + " and " +
				n(contract.JobsOfOneRequest) + " items does not count"},
			{"definition", size(dag.MaxDefinition)},
			{"expression", size(dag.MaxExpression) + ", and " + n(dag.MaxExpressions) + " of a definition"},
		}},
		{"Lists and waiting", []row{
			{"items of a page", n(contract.ListMax) + "; " + n(contract.ListDefault) + " unless said"},
			{"time that a page may search", of(contract.MaxListRead) + "; then it is short and has a cursor"},
			{"`wait`", of(contract.MaxWait)},
			{"until a request whose `wait` was not granted may be repeated", of(contract.WaitingRetryAfter)},
			{"jobs of one redrive", n(contract.RedriveMax) + "; " + n(contract.RedriveDefault) + " unless said"},
			{"headers of a request", size(contract.MaxHeaders)},
		}},
		{"How long things are kept", []row{
			{"a finished job, with its result and attempts", of(contract.FinishedKept)},
			{"an operation that has ended", of(operation.Kept)},
			{"a dead job", of(contract.DeadKept)},
			{"a job of a run's node", of(contract.NodeKept) + " after its end, and as long as the run goes on"},
			{"its letter in the dead-letter queue", of(contract.DeadLetterKept)},
			{"an unfinished job", "until it has ended"},
		}},
		{"Times that are promised", []row{
			{"lease of a worker", of(contract.Lease) + ", renewed each " + of(contract.HeartbeatEvery)},
			{"until a pause or a delete holds", of(contract.EffectiveAfter) + " after its answer"},
			{"time until a lost firing is found", of(contract.Grace) + ", and up to a minute for the pass"},
		}},
	}
}

// deployment is what infra/target sets; its own test holds these lines to it.
var deployment = `## Quotas of a deployment

These differ by target. What is more is answered 429; with ` + "`Retry-After`" + `, unless waiting frees nothing.
` + "`GET /v1/ready` and `punctual doctor`" + ` show how much of its own a tenant has used.

| of | dev | prod | setting |
|---|---|---|---|
| requests a second, of all tenants together | 100 | 5,000 | |
| requests at once, of all tenants together | 200 | 5,000 | |
| requests a second, of each tenant | 50 | 1,000 | ` + "`tenant_rate`" + ` |
| requests at once after a rest, of each tenant | 100 | 2,000 | ` + "`tenant_burst`" + ` |
| requests with ` + "`" + `wait` + "`" + ` that wait at once, of each tenant; more are answered at once, with ` + "`" + `Retry-After` + "`" + ` | 3 | 20 | |
| runs a minute of a tenant's schedules, each at its busiest | 1,000 | 1,000 | ` + "`schedule_quota`" + ` |
| days for which it is kept who changed what | 400 | 400 | ` + "`audit_days`" + ` |
| pods of pool short | 1 to 4 | 2 to 60 | |
| slots of a pod of pool short | 25 | 25 | |
| pods of pool long | 0 to 2 | 1 to 40 | |
| slots of a pod of pool long | 4 | 4 | |
| shards of the due index | 4 | 64 | ` + "`shards`" + `, which may only grow |

A request counts once, and once more for each ` + n(contract.JobsOfOneRequest) +
	` jobs that it makes, brings back or purges, and for each ` +
	size(contract.BytesOfOneRequest) + ` of its body. A node of a run counts likewise
when it is released, by its items and payloads; while a tenant has overdrawn its rate limit by more than
` + n(contract.MaxReleaseOverdraft) + ` requests, its runs wait before such nodes. What has no setting is a line of
[infra/target](../../infra/target/named.go).

## Quotas of AWS

A deploy reads what the account allows, and says what is too small: [deploying](deploying.md#quotas).
`

func renderLimits() string {
	var b strings.Builder
	b.WriteString("# Limits\n\nA request beyond one of these is refused with 400 or 413, and the answer names the " +
		"limit and the field. `go test ./integration/docs -run Limits -update` writes this page from the code, and a " +
		"test fails when the two differ.\n")
	for _, table := range limits() {
		fmt.Fprintf(&b, "\n## %s\n\n| of | limit |\n|---|---|\n", table.title)
		for _, r := range table.rows {
			fmt.Fprintf(&b, "| %s | %s |\n", r.what, r.limit)
		}
	}
	b.WriteString("\n" + deployment)
	return b.String()
}

func TestLimits_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root, limitsPage)
	if *update {
		write(t, path, []byte(renderLimits()))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != renderLimits() {
		t.Errorf("%s is not what the code says; go test ./integration/docs -run Limits -update mends it", limitsPage)
	}
}

// inside are constants of the blocks below that bound nothing of a user's.
var inside = map[string]string{
	"TaskStretch": "a part of how lists find jobs", "ScheduleQuota": "a deployment's, whose line infra/target checks",
	"AuditKept":     "a deployment's, whose line infra/target checks",
	"TombstoneKept": "a deleted job is not found, tombstone or not", "NamePattern": "said in words",
	"DurationPattern": "a form, not a limit", "MaxClaimResult": "where a result is kept, not whether",
	"MaxPreview": "of what is shown of a result that is not kept",
}

// Who adds a limit has it on the page, or says here why not.
func TestLimits_AreAllThere(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	ast.Inspect(parsed(t, "integration/docs/limits_test.go"), func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok {
				used[pkg.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	for _, of := range []struct{ file, first string }{
		{"shared/contract/contract.go", "MaxPayload"}, {"shared/calendar/limit.go", "HorizonYears"},
		{"shared/dag/graph.go", "MaxNodes"}, {"shared/schedule/schedule.go", "MaxCatchUpWindow"},
		{"shared/contract/contract.go", "FinishedKept"},
	} {
		found := 0
		for _, name := range constants(t, of.file, of.first) {
			found++
			pkg := filepath.Base(filepath.Dir(of.file))
			if ast.IsExported(name) && !used[pkg+"."+name] && inside[name] == "" {
				t.Errorf("%s.%s is a limit that %s does not name", pkg, name, limitsPage)
			}
		}
		if found == 0 {
			t.Errorf("%s has no block of constants with %s", of.file, of.first)
		}
	}
}

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// constants lists the names of the block of constants that has first in it.
func constants(t *testing.T, file, first string) []string {
	t.Helper()
	for _, d := range parsed(t, file).Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		var names []string
		there := false
		for _, s := range block.Specs {
			for _, id := range s.(*ast.ValueSpec).Names {
				names = append(names, id.Name)
				there = there || id.Name == first
			}
		}
		if there {
			return names
		}
	}
	return nil
}
