package secret

import (
	"strings"
	"unicode/utf8"

	"punctual/shared/document"
)

// Masked replaces a secret in a text.
const Masked = "[secret]"

// Mask replaces what looks like a secret in a text under these names, the outermost first: the whole text under the
// name of a secret, or else its words. A word NAME=VALUE with such a name counts, too.
func Mask(names []string, s string) string {
	named := notSecret
	for _, name := range names {
		named = named.below(name, secrecyOf(name))
	}
	if named.hidesStrings() && resemblesSecret(s, named) {
		return Masked
	}
	s = maskWords(s)
	if resemblesSecret(s, notSecret) { // of several words
		return Masked
	}
	return s
}

// maskWords replaces the words of a text that look like secrets, one by one.
func maskWords(s string) string {
	var b strings.Builder
	before := ""
	for n, word := range strings.Split(s, " ") {
		if n > 0 {
			b.WriteByte(' ')
		}
		shown := word
		name, value, isPair := strings.Cut(word, "=")
		switch {
		case isPair && isSecretPair(name, value):
			shown = name + "=" + Masked
		case resemblesSecret(word, notSecret), headerSecret(before + " " + word):
			shown = Masked
		}
		b.WriteString(shown)
		before = word
	}
	return b.String()
}

// isSecretPair reports whether a value under that name counts as a secret.
func isSecretPair(name, value string) bool {
	return suspicious(name) && secrecyOf(name).hidesStrings() && utf8.RuneCountInString(value) >= Shortest &&
		!wholeARN().MatchString(value)
}

// InJSON reports whether a document of JSON has strings that look like secrets, below these names. A text that is no
// JSON has none.
func InJSON(names []string, body []byte) bool {
	doc, err := document.Read(body)
	if err != nil {
		return false
	}
	named := notSecret
	for _, name := range names {
		named = named.below(name, secrecyOf(name))
	}
	found := false
	search := Search{Doc: doc}
	search.below(0, &trail{index: -1}, named, nil, func(Finding) bool {
		found = true
		return false
	})
	return found
}
