package operations

import (
	"context"
	"errors"
	"net/http"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/audit"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/tenant"
)

// Handler serves operations.
type Handler struct {
	*spec.Core
}

// New registers the routes of operations.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	h.routes()
	return h
}

func (s *Handler) routes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagOperations, Path: "/v1/operations"}
	rest.GetPage(on, "", "listOperations", "List operations", s.list,
		rest.Route{About: "Lists operations, newest first. One that has ended is kept for {=finished_days} days."})
	rest.Post(on, "", "createOperation", "Do one action to many jobs or runs", s.create, rest.Route{
		Action: audit.OperationCreate,
		Status: http.StatusAccepted, Body: operationRequest, Conflict: true, Also: []int{http.StatusOK},
		About: "Notes which jobs or runs match, up to {=operation_rows}, and then does the action to each of them " +
			"once, the oldest first. What matches later, or fails once more, is left alone. The answer is an " +
			"operation, which continues by itself; it can be paused, resumed and stopped. One whose state does not " +
			"allow the action any more is skipped. With a canary the others wait until the first ones have ended, " +
			"and the operation is FAILED with canary_failed if too few succeeded. With dry_run the answer is 200 " +
			"and an operation without an id. Repeating a request with the same Idempotency-Key answers the " +
			"operation that the first one made, with Idempotency-Replayed: true.",
	})
	rest.Get(on, "/{id}", "getOperation", "Get an operation, and optionally wait for its end", s.get)
	on.Path += "/{id}/"
	rest.Post(on, "pause", "pauseOperation", "Pause an operation",
		s.change(func(o operation.Operation, _ time.Time) (operation.Operation, error) { return o.Pause() }),
		rest.Route{Action: audit.OperationPause, Conflict: true, About: "Nothing new is made or changed until the " +
			"operation is resumed; what is open continues, and is counted."})
	rest.Post(on, "resume", "resumeOperation", "Resume an operation",
		s.change(func(o operation.Operation, _ time.Time) (operation.Operation, error) { return o.Resume() }),
		rest.Route{Action: audit.OperationResume, Conflict: true, About: "Ends the pause. Resuming an operation that " +
			"is not paused changes nothing."})
	rest.Post(on, "stop", "stopOperation", "Stop an operation", s.change(operation.Operation.Stop),
		rest.Route{Action: audit.OperationStop, Conflict: true, About: "The operation has ended at once. What is " +
			"open continues, and is not counted any more."})
	rest.Post(on, "proceed", "proceedOperation", "Overrule the canary of an operation",
		s.change(operation.Operation.Proceed),
		rest.Route{Action: audit.OperationProceed, Conflict: true, About: "The jobs or runs that wait for the ends " +
			"of the first ones follow, also after those failed. Without a canary the answer is 409."})
}

// ByID is the input of a route about one operation.
type ByID struct {
	ID  string `path:"id"`
	key operation.Key
}

// Prepare makes the key of the operation. A text that is no id is an operation that does not exist.
func (in *ByID) Prepare(_ context.Context, who tenant.Identity) error {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return rest.NoSuch("operation")
	}
	in.key = operation.Key{Tenant: who.Tenant, ID: id}
	return nil
}

type getInput struct {
	ByID
	spec.Waits
}

// waited answers a request that may have waited for the end of an operation.
type waited struct {
	RetryAfter string `header:"Retry-After" doc:"Seconds after which to repeat the request, which did not wait because too many requests of the tenant wait already"`
	Body       spec.OperationView
}

func (s *Handler) get(ctx context.Context, who tenant.Identity, in *getInput) (*waited, error) {
	var found operation.Operation
	ended := func() (over bool, err error) {
		found, err = s.Store.Operation(ctx, in.key)
		return found.Status.Over(), problem(err)
	}
	retryAfter := ""
	over, err := ended()
	if err == nil && !over && in.Most > 0 {
		retryAfter, err = s.Await(ctx, who.Tenant, in.Most, ended)
	}
	if err != nil {
		return nil, err
	}
	return &waited{retryAfter, spec.ViewOperation(found, s.Now())}, nil
}

func (s *Handler) list(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, before string, most int,
) (rest.Found[spec.OperationView], error) {
	now := s.Now()
	found, more, err := s.Store.Operations(ctx, who.Tenant, job.ID(before), most)
	return rest.FoundRows(found, more,
		func(o operation.Operation) spec.OperationView { return spec.ViewOperation(o, now) },
		func(o operation.Operation) string { return string(o.ID) }), err
}

type operationAnswer = rest.Answer[spec.OperationView]

// change returns the handler of a request that changes the status of an operation.
func (s *Handler) change(
	by func(operation.Operation, time.Time) (operation.Operation, error),
) func(context.Context, tenant.Identity, *ByID) (*operationAnswer, error) {
	return func(ctx context.Context, _ tenant.Identity, in *ByID) (*operationAnswer, error) {
		is, err := s.Store.Operation(ctx, in.key)
		if err != nil {
			return nil, problem(err)
		}
		change := s.Engine.Backfills.Change
		if is.OnRows() {
			change = s.Bulk.Change
		}
		after, err := change(ctx, in.key, by)
		if err != nil {
			return nil, problem(err)
		}
		return &operationAnswer{Body: spec.ViewOperation(after, s.Now())}, nil
	}
}

// problem turns an error about an operation into a problem.
func problem(err error) error {
	if wrong := new(operation.WrongState); errors.As(err, &wrong) {
		p := rest.NewProblem(spec.CodeWrongState, "%s", wrong.Error())
		p.Allowed = rest.WordsOf(wrong.Allowed)
		return p
	}
	return rest.Absent(err, "operation")
}
