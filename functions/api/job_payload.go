package api

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"punctual/functions/api/wire"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

func itoa(n int) string { return strconv.Itoa(n) }

// number reads what itoa wrote, 0 from anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// readPayload judges a payload by the rules that hold for all, by its executor's and by its
// task's schema, and returns it as it will be kept: compact JSON, nil for none.
func (s *stage) readPayload(ctx context.Context, r *reader, v wire.Value, given bool, pointer string, task job.Task, t tenant.ID, literals []string) ([]byte, error) {
	v.Pointer = pointer + "/payload"
	of, _ := executor.Named(task.Executor)
	if !given || r.Doc.Kind(v.Node) == wire.KindNull {
		if of.NeedsPayload() {
			r.Missing(pointer, "payload")
		}
		return nil, nil
	}
	before := len(r.Wrong)
	payload := r.Doc.Compact(v.Node)
	if len(payload) > contract.MaxPayload {
		r.Mistake(v.Pointer, wire.CodeTooLarge, fmt.Sprintf("at most %d bytes", contract.MaxPayload),
			"the payload has %d bytes", len(payload))
		return nil, nil
	}
	if r.Doc.Depth(v.Node) > contract.MaxDepth {
		r.Mistake(v.Pointer, wire.CodeOutOfRange, fmt.Sprintf("at most %d levels", contract.MaxDepth),
			"the payload is nested more than %d levels deep", contract.MaxDepth)
		return nil, nil
	}
	r.AllDuplicates(v.Node)
	if of.Check != nil {
		site := executor.Site{Tenant: t, Deployment: s.Deployment, HTTPAllow: s.HTTPAllow, OwnPorts: s.OwnPorts}
		of.Check(payloadReader{r}, executor.Value{Node: v.Node, Pointer: v.Pointer}, site)
	}
	r.NoSecrets(v, under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.Wrong) == before {
		r.comparable(v.Node)
	}
	if len(task.PayloadSchema) > 0 && len(r.Wrong) == before {
		if err := s.schemas.judge(ctx, r, v, task.PayloadSchema, payload); err != nil {
			return nil, err
		}
	}
	return payload, nil
}

// reader reads the bodies of this API. It bounds what judging payloads by the schemas of tasks may cost.
type reader struct {
	*wire.Reader
	work  int           // units of work that are left; see meter
	fresh *atomic.Int64 // bytes of schemas that may still be compiled for this request
	// earlier is the id of job n of the batch, if it comes before this one and was accepted. Nil: there is
	// no batch.
	earlier func(n int) (job.ID, bool)
}

func newReader(d *wire.Document) *reader {
	r := &reader{Reader: wire.NewReader(d), work: workPerPayload, fresh: &atomic.Int64{}}
	r.fresh.Store(freshSchemas)
	return r
}

// under are the pointers of allow_literals, which within a batch are still those of the job.
func under(pointer string, literals []string) []string {
	absolute := make([]string, len(literals))
	for i, l := range literals {
		absolute[i] = pointer + l
	}
	return absolute
}

// comparable blames numbers that cannot be compared at a fair price.
func (r *reader) comparable(n int) {
	for i, number := range r.Doc.Numbers(n) {
		if len(r.Wrong) >= wire.MaxMistakes {
			return
		}
		if !comparable(number) {
			r.Mistake(r.Doc.Pointer(i), wire.CodeOutOfRange, comparableAllowed,
				"the number is too large, too long or too near to nothing to be judged by the task's payload_schema")
		}
	}
}
