package text

import "unicode"

// Hidden reports whether a character is a control character or changes the direction of the text around it. Such a
// character lets a text that one person writes command a terminal, or read differently, where another person sees it.
func Hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
