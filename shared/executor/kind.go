package executor

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"punctual/shared/tenant"
)

// Kind is one executor: what the API, the OpenAPI document and the workers know of it.
type Kind struct {
	// Name is what tasks call it.
	Name string
	// About says what it does, as a part of a sentence.
	About string
	// BuiltIn says that every tenant has a task of that name from the start.
	BuiltIn bool
	// Payload is the zero value of the type that a payload is decoded into. Nil: anything is taken.
	Payload any
	// Loose says that a payload may be anything besides Payload, or be left out.
	Loose bool
	// Bounds are what the fields of Payload may hold, beyond their Go types: keywords of JSON
	// Schema, by the type's name and the field's.
	Bounds map[string]Fields
	// Check notes what is wrong with a payload. Nil: nothing can be.
	Check func(r Reader, payload Value, s Site)
}

// Fields are keywords of JSON Schema by the name of a field.
type Fields map[string]Keywords

// Keywords are those of one JSON Schema.
type Keywords map[string]any

// Site is where a payload is validated: for whom, and what the deployment opens.
type Site struct {
	Tenant tenant.ID
	// Deployment is the deployment's prefix, which names of its tenants' secrets carry; "" is
	// contract.DefaultPrefix.
	Deployment string
	HTTPAllow  []netip.Prefix // special-purpose addresses that http jobs may reach
	OwnPorts   []uint16       // ports of Punctual on this machine, which they may not
}

// kinds is the list of executors.
var kinds = []Kind{goKind, httpKind, lambdaKind, echoKind, sqsKind}

// Kinds lists every executor.
func Kinds() []Kind { return slices.Clone(kinds) }

// Go is the name of the executor that runs the user's own handlers.
const Go = "go"

// goKind runs the user's own handlers, which validate their payloads themselves.
var goKind = Kind{Name: Go, About: "the handler that your workers registered under the task's name"}

// Named returns the executor of that name; false if there is none.
func Named(name string) (Kind, bool) {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i], true
	}
	return Kind{}, false
}

// Names lists the names of all executors.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// BuiltIn lists the names of those that have a task of their own, in order.
func BuiltIn() []string {
	var names []string
	for _, k := range kinds {
		if k.BuiltIn {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}

// fieldsOf lists the JSON names of a struct's fields.
func fieldsOf[T any]() []string {
	var names []string
	for t, i := reflect.TypeFor[T](), 0; i < t.NumField(); i++ {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// NeedsPayload says whether a job of this executor must have a payload.
func (k Kind) NeedsPayload() bool { return k.Payload != nil && !k.Loose }
