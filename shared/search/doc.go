// Package search says what can be found of jobs, and by which conditions: what the index holds of a job (Entry), which
// entries a caller asks for (Filter), and which dead jobs have the same cause (Group). Nothing in here reads a clock or
// calls a store; shared/store has the port, and functions/search fills the index from the stream of the jobs table.
//
// What always holds: an entry is computed from the row of its job and from nothing that does not change with that row,
// so the index can be made anew from the jobs table. The row decides: a reader of the index reads each row by its key
// and leaves out a job that no longer matches.
package search
