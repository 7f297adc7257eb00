package status_test

import (
	"testing"
	"time"

	"punctual/functions/batch"
	"punctual/functions/engine/release"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/run"
)

// A report that has waited means that others wait behind it.
func TestStatus_SettlesBeforeItReleasesUnderABacklog(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{
		"releases the children of a node at once when its report is new": false,
		"puts the children of a node behind the reports that wait":       true,
	} {
		bubble(t, name, func(b *bundle) {
			rel := b.Engine().Release
			k := run.Key{Tenant: "acme", ID: job.DerivedID(time.Now(), "run")}
			d := dag.Definition{Nodes: map[string]dag.Node{
				"a": {Task: "echo"}, "b": {Task: "echo", DependsOn: []string{"a"}},
			}}
			is, _, err := rel.Create(b.Context(), release.Request{Key: k, Definition: d})
			if err != nil {
				b.Fatal(err)
			}
			a := b.Row(is.Job("a"))
			if a.Status != job.Scheduled {
				b.Fatalf("a is %s (%s)", a.Status, a.Reason.Message)
			}
			child := func() job.Status {
				rows, err := b.Store.Nodes(b.Context(), []job.Key{is.Job("b")})
				if err != nil {
					b.Fatal(err)
				}
				return rows[0].Status
			}
			sent := message.Delivery{ID: "0", Body: b.ended(a, 1, success()), Receives: 1, SentAt: time.Now()}
			if late {
				sent.SentAt = sent.SentAt.Add(-contract.ReportsBehind - time.Second)
			}
			if _, err := b.stage.Handle(b.Context(), batch.SQSEventOf(sent)); err != nil {
				b.Fatal(err)
			}
			if row := b.Row(a.Key); row.Status != job.Succeeded || row.PendingEffects.Children() != late {
				b.Errorf("a is %s and owes %q", row.Status, row.PendingEffects)
			}
			waiting := b.Received(contract.ReportQueue)
			if !late {
				if child() != job.Scheduled || len(waiting) != 0 {
					b.Errorf("b is %q, and %d messages wait", child(), len(waiting))
				}
				return
			}
			if child() != "" || len(waiting) != 1 {
				b.Fatalf("b is %q, and %d messages wait", child(), len(waiting))
			}
			if again := b.handle(1, waiting[0].Body); again != "" || child() != job.Scheduled {
				b.Errorf("b is %q after the look at a; again %q", child(), again)
			}
			if row := b.Row(a.Key); row.PendingEffects != job.NoPendingEffects {
				b.Errorf("a still owes %q", row.PendingEffects)
			}
		})
	}
}

// The sweeper is minutes away: whoever ends such a node sends its letter.
func TestStatus_SendsTheLetterOfANodeThatNeverRan(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{
		"with the row": false,
		"and leaves one that fails to its own wake-up": true,
	} {
		bubble(t, name, func(b *bundle) {
			k := run.Key{Tenant: "acme", ID: job.DerivedID(time.Now(), "run")}
			d := dag.Definition{Nodes: map[string]dag.Node{
				"a": {Task: "echo"},
				"b": {Task: "echo", DependsOn: []string{"a"}, When: "nodes.a.result.absent > 1"},
				"c": {Task: "echo", DependsOn: []string{"b"}, RunIf: dag.AllFailed},
			}}
			is, _, err := b.Engine().Release.Create(b.Context(), release.Request{Key: k, Definition: d})
			if err != nil {
				b.Fatal(err)
			}
			a := b.Row(is.Job("a"))
			if fails {
				b.Fail("queue.send", contract.RedriveQueue)
			}
			if again := b.handle(1, b.ended(a, 1, success())); again != "" {
				b.Fatal("the report comes again")
			}
			dead, c := b.Row(is.Job("b")), b.Row(is.Job("c"))
			if dead.Status != job.Dead || !dead.PendingEffects.DeadLetter() || dead.WakeAt.IsZero() ||
				c.Status != job.Scheduled {
				b.Errorf("b is %s, owes %q and wakes at %s; c is %s", dead.Status, dead.PendingEffects, dead.WakeAt,
					c.Status)
			}
			if sent := len(b.Received(contract.RedriveQueue)); (sent == 0) != fails || sent > 1 {
				b.Errorf("%d letters were sent", sent)
			}
		})
	}
}
