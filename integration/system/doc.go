// Package system proves the whole product in one process: it runs package workers/system over the in-memory
// implementations in virtual time. Its tests are what CHECKLIST.md and CASES.md name; it holds nothing else.
package system
