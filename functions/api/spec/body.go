package spec

import (
	"context"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/contract"
)

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
