package tenant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ID names a tenant. It never contains '#', which separates the parts of a key.
type ID string

// Local is the tenant of the laptop server, which needs no token.
const Local ID = "local"

// System is the tenant of the deployment's own jobs, such as heartbeats. No caller can be it.
const System ID = "punctual.system"

var pattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// Parse returns s as an ID, or an error that says what is allowed. A tenant is part of keys that
// others use as paths (objects in the bucket, names of secrets), so none consists of dots.
func Parse(s string) (ID, error) {
	if !pattern.MatchString(s) || strings.Trim(s, ".") == "" {
		return "", fmt.Errorf("a tenant is 1 to 64 of a-z A-Z 0-9 _ . -, and not only dots")
	}
	return ID(s), nil
}

// ParseCaller is Parse for who sends a request: it refuses System.
func ParseCaller(s string) (ID, error) {
	id, err := Parse(s)
	if err == nil && id == System {
		return "", fmt.Errorf("the tenant %s is the deployment's own", System)
	}
	return id, err
}

// Scope is one permission of a token.
type Scope string

// The scopes. None includes another; a token without a scope claim has all of them if the
// deployment says so.
const (
	Read  Scope = "punctual:read"  // every GET
	Write Scope = "punctual:write" // create, change, cancel jobs; run now; schedules and exclusions
	Admin Scope = "punctual:admin" // tasks, pauses, redrive, purge
)

// Identity is who sends a request: the tenant, the token's subject and its scopes.
type Identity struct {
	Tenant  ID
	Subject string
	Scopes  []Scope
}

// May reports whether the identity has the scope.
func (i Identity) May(s Scope) bool { return slices.Contains(i.Scopes, s) }
