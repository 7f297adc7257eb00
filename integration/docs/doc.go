// Package docs runs the documents: every command and snippet of README.md and shared/docs is executed from
// the page itself over the laptop's server, and every link between Markdown files is looked up. The package
// holds tests only.
//
// A page is one session in bash, in the order of its blocks, with a server of its own in place of
// localhost:8080. What follows a fence's three marks says what becomes of its block:
//
//	sh         runs. Where "# → text" ends a line, or is one, that text must have been written since the one before;
//	           … in the text matches anything.
//	sh net     runs in the same way; npm and pip install for it, Python's packages as openapi.lock.txt pins them.
//	           With -short, or without these tools outside of CI, it is left out
//	sh serve   starts a server in another terminal: a test of its own starts each; the page's commands have theirs
//	sh aws     needs an account; it is read by bash -n here, and runs on a local AWS in integration/emulator, whose
//	           test names what needs a real one
//	yaml, go, python, ts, …
//	           is a file, whose name is in a comment on its first line
//	go excerpt repeats parts of a file of the repository, whose name is in the same place; "// …" is between parts
//	diff       changes files of the repository
//	json       must be JSON; js, mermaid and text are looked at
//
// A page with a diff, or with a file of workers/, runs in a copy of the repository, and its server is built of
// that. Every other page runs in a folder next to it, which is called punctual.
//
// The README's blocks are pasted whole, too, into bash and zsh as on a terminal: zsh takes no comments there.
//
// A file that no command names is an error, since nothing would run it.
package docs
