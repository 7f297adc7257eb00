// Package rest is generated from openapi.json, the document that the API serves: the types of its
// bodies and a call for each of its operations. Nothing here is written by hand, and nothing here
// reads an answer, retries or signs in: package client does.
//
// make generate makes it again, and a test fails while it is not what the document says.
package rest
