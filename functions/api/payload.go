package api

import (
	"context"
	"fmt"
	"strconv"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/span"
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
func (s *stage) readPayload(ctx context.Context, r *reader, v value, given bool, pointer string, task job.Task, t tenant.ID, literals []string) ([]byte, error) {
	v.pointer = pointer + "/payload"
	of, _ := executor.Named(task.Executor)
	if !given || r.doc.nodes[v.node].kind == kindNull {
		if of.NeedsPayload() {
			r.missing(pointer, "payload")
		}
		return nil, nil
	}
	before := len(r.wrong)
	payload := r.doc.compact(v.node)
	if len(payload) > contract.MaxPayload {
		r.mistake(v.pointer, codeTooLarge, fmt.Sprintf("at most %d bytes", contract.MaxPayload), "the payload has %d bytes", len(payload))
		return nil, nil
	}
	if r.depth(v.node) > contract.MaxDepth {
		r.mistake(v.pointer, codeOutOfRange, fmt.Sprintf("at most %d levels", contract.MaxDepth), "the payload is nested more than %d levels deep", contract.MaxDepth)
		return nil, nil
	}
	r.allDuplicates(v.node)
	if of.Check != nil {
		site := executor.Site{Tenant: t, HTTPAllow: s.HTTPAllow, OwnPorts: s.OwnPorts}
		of.Check(payloadReader{r}, executor.Value{Node: v.node, Pointer: v.pointer}, site)
	}
	r.noSecrets(v, under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.wrong) == before {
		r.comparable(v.node)
	}
	if len(task.PayloadSchema) > 0 && len(r.wrong) == before {
		if err := s.schemas.judge(ctx, r, v, task.PayloadSchema, payload); err != nil {
			return nil, err
		}
	}
	return payload, nil
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
	for i := n; i < int(r.doc.nodes[n].next) && len(r.wrong) < maxMistakes; i++ {
		if r.doc.nodes[i].kind == kindNumber && !comparable(string(r.doc.raw(i))) {
			r.mistake(r.doc.pointer(i), codeOutOfRange, comparableAllowed, "the number is too large, too long or too near to nothing to be judged by the task's payload_schema")
		}
	}
}

// depth is how many levels of arrays and objects a value has.
func (r *reader) depth(n int) int {
	deepest, level := 0, 0
	var ends []int32 // of the containers around
	for i := n; i < int(r.doc.nodes[n].next); i++ {
		for len(ends) > 0 && int32(i) >= ends[len(ends)-1] {
			ends, level = ends[:len(ends)-1], level-1
		}
		if k := r.doc.nodes[i].kind; k == kindArray || k == kindObject {
			ends, level = append(ends, r.doc.nodes[i].next), level+1
			deepest = max(deepest, level)
		}
	}
	return deepest
}

// span reads a length of time of any size.
func (r *reader) span(v value) {
	if r.bareSeconds(v) {
		return
	}
	s, ok := r.text(v)
	if !ok {
		return
	}
	if _, err := span.Parse(s); err != nil {
		r.mistake(v.pointer, codeInvalidValue, span.Allowed, "%s", err.Error())
	}
}
