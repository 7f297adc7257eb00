// Package executor holds the ways of doing work that need no handler of the user's: http,
// lambda and echo, one file each, registered by kind ([Standard]).
//
// What always holds: a request never reaches an address that the deployment does not allow,
// whatever the name resolves to and wherever it redirects; a secret's value appears neither in
// a result nor in an error; answers are read to a limit.
//
// How it fails: with a *[Failure] whose code says what (Code…, job.Code…) and which is
// permanent when another try cannot help; or with the cause that ended the context. What a
// target or a function wrote is never in the message of a failure.
//
//	http:  payload ▸ request ▸ redirect ▸ guard ▸ answer, with the secrets of the attempt in a wallet
package executor
