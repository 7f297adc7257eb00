// Package tenant names who owns things. A tenant comes only from the verified
// token: nothing in this system reads one from a body, a path or a query.
package tenant
