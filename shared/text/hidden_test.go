package text_test

import (
	"testing"

	"punctual/shared/text"
)

func TestHidden_TellsWhatNobodySees(t *testing.T) {
	t.Parallel()
	for _, r := range "\x00\t\n\x1b\x7f\u0080\u009b\u009f\u061c\u200e\u200f\u202a\u202e\u2066\u2069" {
		if !text.Hidden(r) {
			t.Errorf("%U is taken", r)
		}
	}
	for _, r := range "aZ ~é\u00a0שع漢😀\u200d\u2028" {
		if text.Hidden(r) {
			t.Errorf("%U is refused", r)
		}
	}
}
