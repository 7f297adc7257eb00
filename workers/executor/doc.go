// Package executor holds the ways of doing work that need no handler of the user's: http,
// lambda and echo, one file each, registered by kind.
//
// What always holds: a request never reaches an address that the deployment does not allow,
// whatever the name resolves to and wherever it redirects; a secret's value appears neither in
// a result nor in an error; answers are read to a limit.
package executor
