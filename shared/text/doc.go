// Package text writes the JSON that this system stores and sends.
//
// Two things always hold of what [JSON] returns: a queue takes it, whatever the values hold,
// and it is no longer than it must be: markup is not escaped, as encoding/json does by default
// for web pages. Reading it back gives the same values.
package text
