// Package build builds the files of a deployment: a bootstrap for each function, and the worker with its Dockerfile.
// The CDK app calls it before it makes templates, so that a deploy never uses old files. `make build` calls it, too.
//
// What always holds: the same source gives the same bytes on every machine. The hash of a function's folder decides
// whether a deploy replaces the function.
//
// How it fails: with the compiler's output.
package build
