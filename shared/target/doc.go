// Package target decides which network addresses a job may reach. The REST stage applies it to
// address literals when a job is created, and the http executor to every address before it
// connects. It is pure.
//
// What always holds: everything that IANA calls special-purpose is refused, in whatever spelling or
// embedding, unless a prefix that the deployment allows contains it; an unreadable address is
// refused, too. Names are not checked here: what a name resolves to may change before the
// connection, so only the executor can check it.
package target
