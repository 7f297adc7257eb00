// Package proof writes integration/CHECKLIST.md and integration/CASES.md: the promised lines and the failure cases,
// each with the tests that show it.
//
// The texts are checklist.md and cases.md of this folder. The tests are named by marks in their own files. A mark is a
// comment such as
//
//	//proof:of 30 S43
//
// In the comment of a test function it names that test, and above the line that begins with the sentence of a subtest
// it names the subtest. A subtest whose sentence is written elsewhere is named in the comment of its function:
//
//	//proof:of S47 by cancel at due
//
// A row of the texts without a mark has one more cell, which names a command or says why there is no test.
//
// The tests fail when a mark names an unknown line or belongs to no test, when a line has neither mark nor reason, and
// when the written documents are not what texts and marks say; make generate writes them.
package proof
