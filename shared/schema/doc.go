// Package schema validates JSON values by JSON schemas that strangers have written: payloads by a task's
// payload_schema, params by a dag's params_schema.
//
// What always holds: a schema is compiled only if that is cheap, and applied only as far as its budget of
// work goes, so that no schema takes more than a fraction of a second for a value. Checking ends once as many
// violations are known as are reported. The same schema and value always get the same answer, except for which parts
// are named that no other keyword looks at, when there are too many of them. Violations name the
// place, the keyword and its bound, and never what is there.
//
// It fails by saying so: what is wrong with a schema or a value is a fault.Violations, which a caller passes to the
// person who sent it.
package schema
