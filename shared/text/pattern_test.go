package text_test

import (
	"testing"

	"punctual/shared/text"
)

func TestPattern_IsCompiledAtItsFirstUseAndOnce(t *testing.T) {
	t.Parallel()
	name := text.Pattern(`^[a-z]{1,3}$`)
	if !name().MatchString("abc") || name().MatchString("abcd") {
		t.Errorf("%v matches something else", name())
	}
	if first, repeated := name(), name(); first != repeated {
		t.Error("it is compiled each time")
	}
	broken := text.Pattern("(") // does not panic yet
	defer func() {
		if recover() == nil {
			t.Error("what cannot be compiled is used")
		}
	}()
	broken()
}
