// Package console holds the console page to what a person does with it: in Chromium, without a screen, over
// the laptop's server.
//
// browser_test.go drives Chromium by its own protocol over a pipe, with real clicks and keys. axe-core,
// pinned in package-lock.json and installed once into the user's cache, checks each view for people who
// see, hear or point otherwise. Pictures of the views are in shots/, which git ignores: look at them.
//
// The tests need Chromium (Debian's package of that name) and npm.
package console
