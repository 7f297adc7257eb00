// Package itemtest checks how a type is stored: that none of its fields is forgotten, and that no stored byte changes.
package itemtest
