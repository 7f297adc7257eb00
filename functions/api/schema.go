package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaCache keeps compiled payload schemas by their text, which never changes its meaning.
type schemaCache struct {
	mu       sync.Mutex
	compiled map[[sha256.Size]byte]*jsonschema.Schema
}

// maxSchemas bounds the cache; when it is full it starts anew.
const maxSchemas = 256

// maxSchema is how long a task's schema may be: its task is one item, read for every job.
const maxSchema = 32 << 10

func newSchemaCache() *schemaCache {
	return &schemaCache{compiled: map[[sha256.Size]byte]*jsonschema.Schema{}}
}

// noLoader keeps a schema from making us fetch anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema must not refer to other documents")
}

func (c *schemaCache) compile(text json.RawMessage) (*jsonschema.Schema, error) {
	key := sha256.Sum256(text)
	c.mu.Lock()
	known := c.compiled[key]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading a payload schema: %w", err)
	}
	const at = "mem:payload_schema"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(at, doc); err != nil {
		return nil, fmt.Errorf("compiling a payload schema: %w", err)
	}
	schema, err := compiler.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compiling a payload schema: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.compiled) >= maxSchemas {
		clear(c.compiled)
	}
	c.compiled[key] = schema
	return schema, nil
}

// judge blames each part of a payload that does not fit the schema: where, and what would fit,
// but never with what stands there.
func (c *schemaCache) judge(r *reader, pointer string, schema json.RawMessage, payload []byte) error {
	compiled, err := c.compile(schema)
	if err != nil {
		return err // it was compiled when the task was put
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		r.mistake(pointer, codeInvalidValue, "", "the payload has a number that cannot be compared")
		return nil
	}
	err = compiled.Validate(instance)
	var bad *jsonschema.ValidationError
	if errors.As(err, &bad) {
		r.misfits(pointer, "of the task's payload_schema", bad)
		return nil
	}
	return err
}
