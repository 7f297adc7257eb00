// Package text writes and reads the JSON that this system stores and sends, and says what may be shown of texts that
// came from strangers.
//
// Two things always hold for [JSON]: a queue accepts it, whatever the values contain, and it is no
// longer than necessary: markup is not escaped, which encoding/json does by default for web pages.
// Reading it returns the same values.
//
// [CutName], [Quoted] and [EscapePointer] cut long names, and hide one that has the form of a token.
//
// [Pattern] is for regular expressions that take long to compile.
package text
