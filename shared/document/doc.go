// Package document reads JSON that strangers have written. It says what a text holds, without a copy for each value.
//
// What always holds:
//   - A Document is valid UTF-8 and one JSON value, not nested too deeply. Repeated fields are recorded, and the reader
//     of their object reports them.
//   - Two texts have the same Hash if, and only if, they mean the same.
//
// It fails with an *Error, which has a position and nothing of the text.
package document
