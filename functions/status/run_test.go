package status_test

import (
	"testing"
	"time"

	"punctual/functions/batch"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/run"
)

// A report that has waited long shows that the queue is busy.
//
//proof:of 143
func TestStatus_SettlesReportsBeforeChildrenInABacklog(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{
		"releases the children of a node at once if its report is new": false,
		"releases the children of a node after the reports that wait":  true,
	} {
		bubble(t, name, func(b *bench) {
			k := run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "run")}
			is := b.CreateRun(k, stagetest.Graph("a", "b: a"))
			a := b.Row(is.Job("a"))
			if a.Status != job.Scheduled {
				b.Fatalf("a is %s (%s)", a.Status, a.Reason.Message)
			}
			child := func() job.Status {
				rows, err := b.Store.Nodes(b.Context(), []job.Key{is.Job("b")})
				b.Must(err)
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
				b.Errorf("a is %s with pending effects %q", row.Status, row.PendingEffects)
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
			if failed := b.handle(1, waiting[0].Body); failed != "" || child() != job.Scheduled {
				b.Errorf("b is %q after the re-evaluation of a; redelivered %q", child(), failed)
			}
			if row := b.Row(a.Key); row.PendingEffects != job.NoPendingEffects {
				b.Errorf("a still has pending effects %q", row.PendingEffects)
			}
		})
	}
}

// The process that ends such a node sends its dead letter at once: the sweeper would come minutes later.
func TestStatus_SendsTheDeadLetterOfANodeThatNeverRan(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{
		"sends the dead letter with the row":                    false,
		"leaves a dead letter that fails to the node's wake-up": true,
	} {
		bubble(t, name, func(b *bench) {
			k := run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "run")}
			d := dag.Definition{Nodes: map[string]dag.Node{
				"a": {Task: "echo"},
				"b": {Task: "echo", DependsOn: []string{"a"}, When: "nodes.a.result.absent > 1"},
				"c": {Task: "echo", DependsOn: []string{"b"}, RunIf: dag.AllFailed},
			}}
			is := b.CreateRun(k, d)
			a := b.Row(is.Job("a"))
			if fails {
				b.Fail(stagetest.To(memory.QueueSend, contract.RedriveQueue))
			}
			if failed := b.handle(1, b.ended(a, 1, success())); failed != "" {
				b.Fatal("the report is redelivered")
			}
			dead, c := b.Row(is.Job("b")), b.Row(is.Job("c"))
			if dead.Status != job.Dead || !dead.PendingEffects.DeadLetter() || dead.WakeAt.IsZero() ||
				c.Status != job.Scheduled {
				b.Errorf("b is %s with pending effects %q and wakes at %s; c is %s", dead.Status, dead.PendingEffects,
					dead.WakeAt, c.Status)
			}
			if sent := len(b.Received(contract.RedriveQueue)); (sent == 0) != fails || sent > 1 {
				b.Errorf("%d dead letters were sent", sent)
			}
		})
	}
}
