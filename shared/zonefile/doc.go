// Package zonefile gives a process newer time zone rules than those that are built into it, from a file next to it. A
// deployment so renews its rules without a build: a Lambda layer with a file zoneinfo.zip in it is enough.
//
// A file that is damaged, incomplete or no newer than what is built in changes nothing: the process works on by the
// rules that it has, and says so in its log.
package zonefile
