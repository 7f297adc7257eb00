// Package blob keeps in S3 what is too large for an item of a table.
//
// What always holds: a key is written whole or not at all, and read as it was last written. Keys
// are derived from what they hold, so writing one twice is harmless. How blobs are encrypted and
// when they expire is the bucket's business.
//
// How it fails: by the kinds of package fault. A blob over [MaxBlob] is fault.TooLarge, read or
// written, so that no reader's memory depends on what is there.
package blob
