// Package memo remembers answers of AWS for a while: secrets and permissions that would else
// be asked for at every attempt of every job.
//
// What always holds: an answer is never older than the memo's age, and there are never more
// than its bound; errors are not remembered. Two that ask for the same at once may both go and
// ask: that is cheaper than one waiting for another's call to time out.
package memo
