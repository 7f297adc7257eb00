// Package authorizer says who asks: it turns a bearer token into a tenant, a subject and
// scopes, and that into the policy that API Gateway wants of its Lambda authorizer.
//
// What always holds: the algorithms are RS256, ES256 and EdDSA, chosen before a token is
// looked at; which of them a token is verified with follows from the issuer's key, never from
// the token alone; issuer, audience and expiry are demanded; the tenant comes from the claim,
// or the scope, that the deployment names and from nowhere else. Every refusal looks the same from outside.
// A token, or a part of one, is never logged.
//
// How it fails: with [ErrUnauthorized], which API Gateway answers with 401. The cause is a log
// line. When the issuer's keys cannot be fetched, those that are known go on working for
// [MaxStale]; without any, every token is refused and the log says so at level error.
//
// How soon a change of keys is seen:
//
//	new key     at its first token: a key id that is not known makes the keys be fetched,
//	            at most once per [CoolDown], however many made-up ids come in
//	removed key within [FreshFor], and not while the issuer cannot be reached
//
// API Gateway keeps a policy for as long as its authorizer cache says (300 s unless set
// otherwise) and uses it for every route: therefore the policy allows all routes of the
// stage, and the REST stage checks scopes for each. A token that ends or whose key is removed
// may live on that much longer.
package authorizer
