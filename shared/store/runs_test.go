package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/store"
)

var runsNoon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// withRun is a store that holds one run.
func withRun(t *testing.T) (*store.Store, run.Run) {
	t.Helper()
	w := memory.New(memory.Options{})
	t.Cleanup(w.Close)
	s := store.New(w.Table(), w.Blobs())
	r, write := run.Create(run.Run{
		Key:        run.Key{Tenant: "acme", ID: job.DeterministicID(runsNoon, "r")},
		Definition: "h", DueAt: runsNoon, Shard: 3,
	}, runsNoon)
	if err := s.WriteRun(context.Background(), r, write); err != nil {
		t.Fatal(err)
	}
	return s, r
}

func TestRuns_AreFoundByTheirWakeUpUntilTheyAreOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	slice := horizon.SliceOf(runsNoon, 3).String()
	due, next, err := s.DueRuns(ctx, store.DueQuery{Slice: slice})
	if err != nil || next != "" || len(due) != 1 || due[0].Key != r.Key || !due[0].WakeAt.Equal(runsNoon) {
		t.Errorf("due %+v, %v", due, err)
	}
	after, write := r.End(run.Succeeded, nil, runsNoon)
	if err := s.WriteRun(ctx, after, write); err != nil {
		t.Fatal(err)
	}
	if due, _, err := s.DueRuns(ctx, store.DueQuery{Slice: slice}); err != nil || len(due) != 0 {
		t.Errorf("a run that is over is due: %+v, %v", due, err)
	}
}

func TestWriteRun_RecognisesItsOwnWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	after, write := r.Pause()
	for range 2 {
		if err := s.WriteRun(ctx, after, write); err != nil {
			t.Errorf("its own write is refused: %v", err)
		}
	}
	_, other := r.Halt(run.StopCancel, job.Reason{}, runsNoon)
	if err := s.WriteRun(ctx, r, other); store.Refused(err) == nil {
		t.Errorf("a write of an older epoch: %v", err)
	}
}

func TestUpdateRun_WritesTheRunAndItsEventTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	for _, action := range []string{"pause", "resume"} {
		_, err := s.UpdateRun(ctx, r.Key, func(old run.Run) ([]item.Write, error) {
			after, write := old.Pause()
			return []item.Write{write, after.PutEvent(run.Event{At: runsNoon, By: "alice", Action: action})}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	events, _, err := s.Events(ctx, r.Key, "", 10)
	if err != nil || len(events) != 2 || events[0].Action != "pause" || events[1].Action != "resume" {
		t.Errorf("events %+v, %v", events, err)
	}
	absent := run.Key{Tenant: "other", ID: r.ID}
	if _, err := s.UpdateRun(ctx, absent, nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant's run: %v", err)
	}
}

//proof:of 74
func TestNodes_ReadsRowsInOrderAndKnowsHowForgottenOnesEnded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	keys := []job.Key{r.Key.Job("a", 1, 0), r.Key.Job("b", 1, 0), r.Key.Job("c", 1, 0)}
	row := job.Row{
		Key: keys[0], Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: runsNoon, DueAt: runsNoon,
		Settings: job.Settings{Task: "echo"}, NodeRef: job.NodeRef{RunID: string(r.ID), Node: "a", Generation: 1},
	}
	ended, write := job.AcceptEnded(row, job.Dead, job.Reason{Code: "x"}, runsNoon)
	third := row
	third.Key, third.Node = keys[2], "c"
	_, other := job.AcceptEnded(third, job.Skipped, job.Reason{}, runsNoon)
	for _, w := range []item.Write{write, other} {
		if err := s.Put(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.Nodes(ctx, keys)
	if err != nil || rows[0].Status != job.Dead || rows[1].Status != "" || rows[2].Node != "c" {
		t.Errorf("rows %+v, %v", rows, err)
	}
	known, write := job.NotifyDone(ended, runsNoon)
	if err := s.PutRow(ctx, known, write); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ctx, job.Forget(known, runsNoon)); err != nil {
		t.Fatal(err)
	}
	rows, err = s.Nodes(ctx, keys[:1])
	if err != nil || rows[0].Status != job.Dead {
		t.Errorf("a forgotten node is %+v, %v", rows, err)
	}
}

func TestPermits_NameTheirHolders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	first, second := run.Bucket{Key: r.Key}, run.Bucket{Key: r.Key, Owner: "m", No: 4}
	now := time.Now()
	for _, w := range []item.Write{first.Take(2, "B", now), first.Take(2, "A", now), second.Take(1, "C", now)} {
		if err := s.Put(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	held, err := s.PermitHolders(ctx, []run.Bucket{second, {Key: r.Key, No: 1}, first})
	if err != nil || fmt.Sprint(held) != "[[C] [] [A B]]" {
		t.Errorf("%v, %v", held, err)
	}
}

func TestSlots_OfARunFromBeforeAreRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	old := item.Write{Ref: r.SlotRef("", 1), Set: map[string]any{"holder": "A", "no": int64(1)}}
	if err := s.Put(ctx, old); err != nil {
		t.Fatal(err)
	}
	holders, err := s.Slots(ctx, r.Key, "", 3)
	if err != nil || fmt.Sprint(holders) != "[A]" {
		t.Errorf("holders %v, %v", holders, err)
	}
}

func TestForgetRun_LeavesNothingOfARunThatIsOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, r := withRun(t)
	if err := s.Put(ctx, r.PutContent(run.ParamsContent, "{}", time.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Count(ctx, r.Key, r.JoinRef("a", 1), 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetRun(ctx, r); store.Refused(err) == nil {
		t.Errorf("a run that goes on is forgotten: %v", err)
	}
	if _, err := s.RunContent(ctx, r.Key, run.ParamsContent); err != nil {
		t.Errorf("a run that goes on has lost its params: %v", err)
	}
	after, write := r.End(run.Failed, nil, runsNoon)
	if err := s.WriteRun(ctx, after, write); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetRun(ctx, after); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, r.Key); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the run is %v", err)
	}
	if _, err := s.RunContent(ctx, r.Key, run.ParamsContent); fault.KindOf(err) != fault.NotFound {
		t.Errorf("its params are %v", err)
	}
}
