package tenant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ID names a tenant. It never contains '#', which separates the parts of a key.
type ID string

// Local is the tenant of the laptop server, where nobody signs in.
const Local ID = "local"

var pattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// Parse returns s as an ID, or says what is allowed. A tenant is a part of keys that others
// take for paths (objects in the bucket, names of secrets), so none consists of dots.
func Parse(s string) (ID, error) {
	if !pattern.MatchString(s) || strings.Trim(s, ".") == "" {
		return "", fmt.Errorf("a tenant is 1 to 64 of a-z A-Z 0-9 _ . -, and not only dots")
	}
	return ID(s), nil
}

// Scope is one thing a token allows.
type Scope string

// The scopes, each including nothing but itself; a token without any scope claim has all of
// them when the deployment says so.
const (
	Read  Scope = "punctual:read"  // every GET
	Write Scope = "punctual:write" // create, change, cancel jobs; run now; schedules and exclusions
	Admin Scope = "punctual:admin" // tasks, pauses, redrive, purge
)

// Identity is who asks: the tenant, the token's subject and what it allows.
type Identity struct {
	Tenant  ID
	Subject string
	Scopes  []Scope
}

// May says whether the identity holds the scope.
func (i Identity) May(s Scope) bool { return slices.Contains(i.Scopes, s) }
