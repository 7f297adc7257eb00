package dags

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of operations on runs.
var (
	retryFrom = spec.Name("from", "Name of the node to retry: it and every node downstream of it run once more, "+
		"whatever their outcomes. Default: the failed nodes, and the downstream nodes cancelled by them.")
	skipChildren = field.Word[string]("children", "Effect on the downstream nodes. run (default): they run as if the "+
		"node had succeeded, with the result null; skip: they are skipped, as after any skipped node",
		rest.CodeInvalidValue, []string{"run", "skip"})
	nodeResult = field.Value("result", "Result of the node, for the nodes downstream of it; default: null",
		field.Anything)

	operationRequest    = field.NewObject("RunActRequest", "Operation on a run", spec.Reason)
	runRetryRequest     = field.NewObject("RunRetryRequest", "Retry of a run", retryFrom, spec.Reason)
	nodeSkipRequest     = field.NewObject("NodeSkipRequest", "Skip of a node", skipChildren, spec.Reason)
	nodeCompleteRequest = field.NewObject("NodeCompleteRequest", "Completion of a node by operator override",
		nodeResult, spec.Reason)
)

type runAnswer = rest.Answer[spec.RunView]

// operate reads the body of an operation, carries it out, and answers with the run after it. read reads the fields
// other than reason; nil: there are none.
func (s *Handler) operate(
	ctx context.Context, who tenant.Identity, k run.Key, request *field.Object, read func(*rest.Reader, rest.Fields),
	carryOut func(run.Key, runs.By) (run.Run, error),
) (*runAnswer, error) {
	by := runs.By{Who: who.Subject}
	err := spec.OptionalBody(ctx, request, func(r *rest.Reader, f rest.Fields) {
		spec.Reason.Into(r, f, &by.Reason)
		if read != nil {
			read(r, f)
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err := carryOut(k, by); err != nil {
		return nil, asRunProblem(err)
	}
	v, err := s.ShowRun(ctx, k)
	return &runAnswer{Body: v}, err
}

// plainOperation returns the handler of an operation that takes only a reason.
func (s *Handler) plainOperation(
	carryOut func(context.Context, run.Key, runs.By) (run.Run, error),
) func(context.Context, tenant.Identity, *ByID) (*runAnswer, error) {
	return func(ctx context.Context, who tenant.Identity, in *ByID) (*runAnswer, error) {
		return s.operate(ctx, who, in.key, operationRequest, nil, func(k run.Key, by runs.By) (run.Run, error) {
			return carryOut(ctx, k, by)
		})
	}
}

func (s *Handler) retryRun(ctx context.Context, who tenant.Identity, in *ByID) (*runAnswer, error) {
	from := ""
	return s.operate(ctx, who, in.key, runRetryRequest, func(r *rest.Reader, f rest.Fields) {
		retryFrom.Into(r, f, &from)
	}, func(k run.Key, by runs.By) (run.Run, error) {
		is, err := s.Runs.Retry(ctx, k, from, by)
		if fault.KindOf(err) == fault.Invalid && from != "" {
			err = rest.OneViolation("/from", spec.CodeUnknownNode, "a node of the run",
				"the run has no node %s", text.Quoted(from))
		}
		return is, err
	})
}

func (s *Handler) retryRunNode(ctx context.Context, who tenant.Identity, in *ByNode) (*runAnswer, error) {
	return s.operate(ctx, who, in.key, operationRequest, nil, func(k run.Key, by runs.By) (run.Run, error) {
		return s.Runs.RetryNode(ctx, k, in.Node, by)
	})
}

func (s *Handler) skipRunNode(ctx context.Context, who tenant.Identity, in *ByNode) (*runAnswer, error) {
	children := ""
	return s.operate(ctx, who, in.key, nodeSkipRequest, func(r *rest.Reader, f rest.Fields) {
		skipChildren.Into(r, f, &children)
	}, func(k run.Key, by runs.By) (run.Run, error) {
		return s.Runs.Skip(ctx, k, in.Node, children == "skip", by)
	})
}

func (s *Handler) completeRunNode(ctx context.Context, who tenant.Identity, in *ByNode) (*runAnswer, error) {
	var result json.RawMessage
	return s.operate(ctx, who, in.key, nodeCompleteRequest, func(r *rest.Reader, f rest.Fields) {
		if v, ok := f[nodeResult.Name()]; ok {
			result = readResult(r, v)
		}
	}, func(k run.Key, by runs.By) (run.Run, error) {
		return s.Runs.Complete(ctx, k, in.Node, result, by)
	})
}

// readResult reads the result that a node gets; null is none.
func readResult(r *rest.Reader, v rest.Value) json.RawMessage {
	if r.Doc.Kind(v.Node) == document.KindNull {
		return nil
	}
	raw := r.Doc.Compact(v.Node)
	if len(raw) > contract.MaxResult {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d bytes", contract.MaxResult),
			"the result has %d bytes", len(raw))
	} else {
		spec.TooDeep(r, v, "the result is")
	}
	r.AllDuplicates(v.Node)
	r.NoSecrets(v, nil)
	return slices.Clone(raw)
}

// forgetRun forgets a run that has ended, its jobs first.
func (s *Handler) forgetRun(ctx context.Context, _ tenant.Identity, in *ByID) (*rest.NoContent, error) {
	f, err := s.Read.Snapshot(ctx, in.key)
	if err != nil {
		return nil, asRunProblem(err)
	}
	if !f.Run.Status.Final() {
		return nil, rest.NewProblem(spec.CodeNotFinished, "the run has not ended; cancel it first")
	}
	if f.Run.MustNotify() {
		return nil, rest.NewProblem(spec.CodeNotFinished,
			"the run has not yet notified its schedule; repeat the request in a moment")
	}
	if err := s.allStopped(ctx, f); err != nil {
		return nil, err
	}
	for _, name := range f.Graph.Names() {
		for g := range f.Run.Generation(name) {
			if err := s.forgetNode(ctx, f, name, g+1); err != nil {
				return nil, err
			}
		}
	}
	err = s.Store.ForgetRun(ctx, f.Run)
	if store.Refused(err) != nil {
		return nil, rest.NewProblem(spec.CodeWrongState,
			"another request has changed the run meanwhile; read it once more")
	}
	return &rest.NoContent{}, err
}

// allStopped returns a problem while a job of an earlier generation, which was asked to stop, has not. It comes before
// anything is forgotten.
func (s *Handler) allStopped(ctx context.Context, f *dag.Snapshot) error {
	var older []job.Key
	for _, name := range f.Graph.Names() {
		for g := range f.Run.Generation(name) - 1 {
			older = append(older, f.Run.Key.Job(name, g+1, 0))
		}
	}
	rows, err := s.Store.Nodes(ctx, older)
	if slices.ContainsFunc(rows, job.Row.Unfinished) {
		return rest.NewProblem(spec.CodeNotFinished,
			"a job of the run has not stopped yet; repeat the request in a moment")
	}
	return err
}

// forgetNode forgets the jobs of one generation of a node. It skips jobs that are gone.
func (s *Handler) forgetNode(ctx context.Context, f *dag.Snapshot, name string, generation int64) error {
	rows, err := s.Store.Nodes(ctx, []job.Key{f.Run.Key.Job(name, generation, 0)})
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
		if err := s.clearEffects(ctx, k); err != nil {
			return err
		}
		err := s.jobs.Forget(ctx, k, func(job.Row) error { return nil })
		if err != nil && !rest.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// clearEffects clears the pending effects of a job whose run has ended, because nothing in the run waits for it.
func (s *Handler) clearEffects(ctx context.Context, k job.Key) error {
	rows, err := s.Store.Nodes(ctx, []job.Key{k})
	if err != nil || !rows[0].PendingEffects.Children() {
		return err
	}
	_, write := job.NotifyDone(rows[0], s.Now())
	if err := s.Store.Put(ctx, write); store.Refused(err) == nil {
		return err
	}
	return nil
}
