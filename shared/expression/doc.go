// Package expression checks and evaluates the expressions of graphs within a budget.
//
// The language is CEL without messages: cel-go parses the text and computes with single values (numbers, text, bytes,
// instants, durations). This package checks types, walks the tree, and owns lists and maps, because their size must be
// known before anything is done with them.
//
//	text ─ Compile ─▶ Program ─ Eval(variables, meter) ─▶ value ─ AppendJSON, AppendText ─▶ bytes
//
// What always holds:
//   - Compile bounds the text, the parts, the depth and the macros of an expression. Types have a bounded depth.
//   - A list and a map know their weight: the bytes they take when every shared part is counted as often as it occurs.
//     No value is heavier than MaxMemory.
//   - Each step is paid from the budget before it is done, by the size of what it reads and makes. The budget counts
//     steps and bytes, not time, so that the same facts always give the same answer.
//   - Evaluation ends soon after its context.
//
// How it fails: an *Error names a position in the text and shows no value.
package expression
