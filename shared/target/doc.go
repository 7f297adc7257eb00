// Package target says which network addresses a job may reach: the judgement that both the
// REST stage (of address literals, when a job is created) and the http executor (of every
// address it is about to connect to) go by. It is pure.
//
// What always holds: everything that IANA calls special-purpose is refused, in whatever
// spelling or embedding, unless a prefix that the deployment allows contains it; an address
// that cannot be understood is refused, too. Names are not judged here: what a name resolves
// to may change between looking and connecting, so only the executor can.
package target
