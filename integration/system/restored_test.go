package system_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// A restored jobs table has jobs as they were at that time: overdue, and with old claims.
func TestSystem_StartsNothingFromARestoredTableUntilItIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		soon, far := b.Post(object{"task": "echo", "delay": "5m"}), b.Post(object{"task": "echo", "delay": "2h"})
		time.Sleep(4 * time.Minute)
		b.World.Table().Restored(contract.Jobs)
		time.Sleep(3 * time.Hour) // longer than any grace
		late := b.Post(object{"task": "echo"})
		time.Sleep(time.Hour)
		for _, id := range []string{soon, far, late} {
			if v := b.Job(id); v["status"] == "SUCCEEDED" || v["started_at"] != nil {
				t.Errorf("nobody has let it run, and it is %v", v)
			}
		}
		if held, _ := b.Want(200, "GET", "/ready", nil)["held"].([]any); len(held) != 1 || held[0] != contract.Jobs {
			t.Errorf("ready says that %v is held", held)
		}
		// Before that, the operator can cancel jobs.
		b.Want(200, "POST", "/jobs/"+far+"/cancel", nil)
		is, err := b.World.Table().Identity(context.Background(), contract.Jobs)
		if err != nil {
			t.Fatal(err)
		}
		err = b.sys.Store.Put(context.Background(), item.Write{
			Ref:  item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "tables"},
			Name: "test.lift", Set: map[string]any{contract.Jobs: is.ID},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + 10*time.Minute)
		b.WantStatus(soon, "SUCCEEDED")
		b.WantStatus(far, "CANCELLED")
		b.WantStatus(late, "SUCCEEDED")
		if held := b.Want(200, "GET", "/ready", nil)["held"]; held != nil {
			t.Errorf("ready says that %v is held", held)
		}
	})
}

func TestDeadLetters_LeaveTheirQueueWhenTheyAreRedrivenOrPurgedByREST(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		var ids []any
		for range 5 {
			ids = append(ids,
				b.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}}))
		}
		deadLetters := func() int {
			d, err := b.World.Queues().Depth(context.Background(), contract.DeadLetters)
			if err != nil {
				t.Fatal(err)
			}
			return d.Visible
		}
		const alarmSees = 2 * time.Minute
		time.Sleep(5 * time.Minute)
		if n := deadLetters(); n != 5 {
			t.Fatalf("%d dead letters", n)
		}
		b.Want(200, "POST", "/dead-letters/purge", object{"job_ids": ids[:2]})
		time.Sleep(alarmSees)
		if n := deadLetters(); n != 3 {
			t.Errorf("two were purged, and %d of 5 are left", n)
		}
		b.Want(202, "POST", "/jobs/"+ids[2].(string)+"/redrive", nil)
		time.Sleep(5 * time.Minute)
		if n := deadLetters(); n != 3 { // one went, and that of the new job was added
			t.Errorf("%d dead letters", n)
		}
		b.Want(204, "DELETE", "/jobs/"+ids[3].(string), nil)
		time.Sleep(alarmSees)
		if n := deadLetters(); n != 2 {
			t.Errorf("another was deleted, and %d are left", n)
		}
		// The console's redrive works on what is left.
		if _, err := b.World.Queues().StartMoveTask(context.Background(), contract.DeadLetters, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if v := b.Job(ids[4].(string)); v["redriven_by"] == nil {
			t.Errorf("the console did not bring it back: %v", v)
		}
	})
}
