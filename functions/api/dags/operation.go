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
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/run"
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
	err := s.Jobs.ForgetRun(ctx, in.key)
	if fault.KindOf(err) == fault.NotFound {
		err = errNoRun()
	}
	return &rest.NoContent{}, spec.JobProblem(err)
}
