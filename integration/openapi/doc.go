// Package openapi holds the REST API to its own OpenAPI document, by tools that others wrote.
//
// Schemathesis, a public tester, asks a laptop's server about 5,000 requests made from the document,
// of which some fit it and the others do not. The test fails on a 5xx, an undocumented status, content
// type or answer, a request that fits the document and is refused, and one that does not and is taken.
// hooks.py says what JSON Schema has no words for: which times are near, which lengths of time are
// within limits, which tasks exist. schemathesis.toml says which checks run.
//
// Three public generators, oapi-codegen for Go, openapi-python-client and openapi-typescript, make
// clients of the document without a warning. client.py has a job run by the second; client.ts works
// with jobs, lists, schedules, dags and dead letters by the types of the third, and holds violations
// that these types must refuse.
//
// The tests need Python 3.10 and Node.js 20 or later. The packages of Python are pinned with those
// of the emulators, those of Node.js in package-lock.json; they are installed once into the user's cache.
package openapi
