// Package openapi holds the REST API to its own OpenAPI document, by tools that others wrote.
//
// Schemathesis, a public tester, asks a laptop's server about 5,000 requests made from the document,
// of which some fit it and the others do not. The test fails on a 5xx, an undocumented status, content
// type or answer, a request that fits the document and is refused, and one that does not and is taken.
// hooks.py says what JSON Schema has no words for: which times are near, which lengths of time are
// within limits, which tasks exist. schemathesis.toml says which checks run.
//
// Two public generators, oapi-codegen for Go and openapi-python-client, make clients of the document
// without a warning, and client.py has a job run by one of them.
//
// The tests need Python 3.10 or later. Its packages are pinned beside those of the emulators and
// installed once into the user's cache.
package openapi
