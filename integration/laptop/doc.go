// Package laptop is Punctual on localhost: every stage and a worker in one process, over the memory
// twins, with the real clock. What it holds is gone when it ends.
package laptop
