package spec

import (
	"context"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/tenant"
)

// This file has the parts of requests that several routes share.

// Keyed has the header of a request that can be repeated.
type Keyed struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"Idempotency key, printable ASCII, which identifies this request for {=key_hours} hours"`
}

// Prepare reads the header.
func (in *Keyed) Prepare(ctx context.Context, _ tenant.Identity) (err error) {
	in.IdempotencyKey, err = readKey(rest.HeaderOf(ctx).Values("Idempotency-Key"))
	return err
}

// Waits has the parameter of a request that can wait for an end.
type Waits struct {
	Wait string        `query:"wait" doc:"Maximum wait for a final status. On timeout the current state is returned; it is returned at once, with Retry-After, when too many requests of the tenant wait" example:"20s"`
	Most time.Duration // 0: it does not wait
}

// Prepare reads the parameter.
func (in *Waits) Prepare(context.Context, tenant.Identity) (err error) {
	in.Most, err = ReadWait("wait", in.Wait)
	return err
}

// ReadBody reads a body that must be there; what names what it holds.
func ReadBody(ctx context.Context, request *field.Object, what string) (*rest.Reader, rest.Fields, error) {
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", what+" is needed in the body")
	if err != nil {
		return nil, nil, err
	}
	r := NewReader(doc)
	return r, request.Body(r), nil
}

// OptionalBody reads the body of a request that may have none. read reads the fields of a body that is there.
func OptionalBody(ctx context.Context, request *field.Object, read func(*rest.Reader, rest.Fields)) error {
	doc, err := rest.ReadBody(ctx, contract.MaxBody)
	if err != nil || doc == nil {
		return err
	}
	r := NewReader(doc)
	read(r, request.Body(r))
	return r.Wrong.Err()
}
