// Package rest is generated from the document that the API serves at /v1/openapi.json: the types of its bodies and
// parameters, and the method and path of each operation. All of it is generated, and nothing here calls:
// package client does.
//
// make generate makes it again, and a test fails while it is not what the document says.
package rest
