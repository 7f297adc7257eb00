// Package laptop is Punctual on localhost: every stage and a worker in one process, over the memory
// twins, with the real clock. What it holds is gone when it ends, unless Options.Data names a folder that
// keeps it.
//
// With a folder, an answered call is in a file: whatever ends the process, the next one goes on from
// there, and what had been received and not handled is received again at once. The file is synced each
// second, so that a failure of the machine costs the last second at most.
package laptop
