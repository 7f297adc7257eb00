package edit

import (
	"context"
	"slices"

	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
)

// ForgetRun forgets a run that has ended, its jobs first.
func (e *Editor) ForgetRun(ctx context.Context, k run.Key) error {
	f, err := e.Read.Snapshot(ctx, k)
	if err != nil {
		return err
	}
	if !f.Run.Status.Final() {
		return state(NotFinished, "the run has not ended; cancel it first")
	}
	if f.Run.Unfinished() {
		return state(NotFinished, "the run has yet to notify its schedule, or webhooks; repeat the request in a moment")
	}
	if err := e.allStopped(ctx, f); err != nil {
		return err
	}
	for _, name := range f.Graph.Names() {
		for g := range f.Run.Generation(name) {
			if err := e.forgetNode(ctx, f, name, g+1); err != nil {
				return err
			}
		}
	}
	err = e.Store.ForgetRun(ctx, f.Run)
	if store.Refused(err) != nil {
		return state(WrongState, "another request has changed the run meanwhile; read it once more")
	}
	return err
}

// allStopped returns an error while a job of an earlier generation, which was asked to stop, has not. It comes before
// anything is forgotten.
func (e *Editor) allStopped(ctx context.Context, f *dag.Snapshot) error {
	var older []job.Key
	for _, name := range f.Graph.Names() {
		for g := range f.Run.Generation(name) - 1 {
			older = append(older, f.Run.Key.Job(name, g+1, 0))
		}
	}
	rows, err := e.Store.Nodes(ctx, older)
	if slices.ContainsFunc(rows, job.Row.Unfinished) {
		return state(NotFinished, "a job of the run has not stopped yet; repeat the request in a moment")
	}
	return err
}

// forgetNode forgets the jobs of one generation of a node. It skips jobs that are gone.
func (e *Editor) forgetNode(ctx context.Context, f *dag.Snapshot, name string, generation int64) error {
	rows, err := e.Store.Nodes(ctx, []job.Key{f.Run.Key.Job(name, generation, 0)})
	if err != nil {
		return err
	}
	if rows[0].Status == "" {
		return nil
	}
	keys := []job.Key{}
	for i := range rows[0].Items {
		keys = append(keys, f.Run.Key.Job(name, generation, i+1))
	}
	for _, k := range append(keys, f.Run.Key.Job(name, generation, 0)) {
		if err := e.clearEffects(ctx, k); err != nil {
			return err
		}
		err := e.Forget(ctx, k, func(job.Row) error { return nil })
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// clearEffects clears the pending effects of a job whose run has ended, because nothing in the run waits for it.
func (e *Editor) clearEffects(ctx context.Context, k job.Key) error {
	rows, err := e.Store.Nodes(ctx, []job.Key{k})
	if err != nil || !rows[0].PendingEffects.Children() {
		return err
	}
	_, write := job.NotifyDone(rows[0], e.Read.Now())
	if err := e.Store.Put(ctx, write); store.Refused(err) == nil {
		return err
	}
	return nil
}
