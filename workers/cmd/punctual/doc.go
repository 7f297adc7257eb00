// Command punctual is Punctual's command line: it serves on a laptop, and calls the API of any
// deployment by package client.
//
// What it was asked for goes to standard output, everything else to standard error. Its exit codes are
// part of its interface; see exit.go.
package main
