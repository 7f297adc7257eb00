// Package secret says what looks like a secret in what a request would keep in the clear. It decides by names, by the
// forms of tokens, and by what URLs hold; it never repeats a value.
package secret
