// Package edit changes, cancels, redrives and forgets single jobs, and forgets runs, on request.
//
// What always holds: every change is one of package job's named writes, decided from the row as it is; where another
// writer comes first, it is decided once more from the new row. A job that its schedule has given up cannot be changed.
//
// How it fails: with a *State that says in words what the state does not allow, with a fault.NotFound, or with the
// store's error. Each call may be repeated.
package edit
