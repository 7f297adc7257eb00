// Package field states each field of a request body once: its name, its description, what it may hold and how it is
// read. The readers of bodies and the OpenAPI document are both made from that statement, so they cannot disagree.
//
// A Field belongs to any number of Objects. An Object is the body of a request, or an object within one.
package field
