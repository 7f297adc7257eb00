// Package build makes the files that a deployment takes along: a bootstrap for each function, and
// the worker with its Dockerfile. The CDK app calls it before it makes templates, so that a deploy
// takes what the source says, and `make build` calls it alone.
//
// What always holds: the same source gives the same bytes, whoever builds it where. The hash of a
// function's folder decides whether a deploy replaces it.
//
// How it fails: with what the compiler said.
package build
