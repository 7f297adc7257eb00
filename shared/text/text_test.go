package text_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"punctual/shared/text"
)

// Every character of Unicode, in a string, as a key and in raw JSON that was encoded elsewhere.
func TestJSON_CanBeSentWithAnyCharacter(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r < 0xD800 || r > 0xDFFF {
			all.WriteRune(r)
		}
	}
	raw := json.RawMessage(`{"a":"x` + "\uffff\ufffe\u2028\x7f" + `y","lone":"\ud800","key` + "\uffff" + `":1}`)
	for name, v := range map[string]any{
		"a string":        all.String(),
		"a key":           map[string]string{all.String(): ""},
		"raw JSON":        raw,
		"nested raw JSON": map[string]any{"outcome": raw},
	} {
		b, err := text.JSON(v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !text.Allowed(string(b)) {
			t.Errorf("%s becomes JSON that no queue takes", name)
		}
		want, _ := json.Marshal(v)
		var was, is any
		if err := json.Unmarshal(want, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &is); err != nil || !reflect.DeepEqual(is, was) {
			t.Errorf("%s is read back as something else: %v", name, err)
		}
	}
}

func TestSendable_ReplacesOnlyInvalidUTF8(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"plain <&> ü€😀"`:        `"plain <&> ü€😀"`,
		"\"a\xffb\"":             "\"a\ufffdb\"",
		"\"\xed\xa0\x80\"":       "\"\ufffd\ufffd\ufffd\"", // an encoded surrogate
		"\"x\uffffy\"":           `"x\uffffy"`,
		"\"\ufffd stays\"":       "\"\ufffd stays\"",
		"\"\ufffe\xff\ufffftail": `"\ufffe` + "\ufffd" + `\ufffftail`,
	} {
		if got := string(text.Sendable([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

//proof:of F11
func TestJSON_DoesNotEscapeMarkup(t *testing.T) {
	t.Parallel()
	markup := strings.Repeat("<&>", 1000)
	for name, v := range map[string]any{"a string": markup, "raw JSON": json.RawMessage(`"` + markup + `"`)} {
		if b, err := text.JSON(v); err != nil || string(b) != `"`+markup+`"` {
			t.Errorf("%s of %d bytes becomes %d bytes, %v", name, len(markup), len(b), err)
		}
	}
}

func TestAllowed_IsTheCharacterSetOfSQS(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"": false, "a": true, "\t\n\r": true, "\x00": false, "\x0b": false, "\x1f": false, "\x7f": true, "\u0085": true,
		"\ud7ff\ue000\ufffd\U00010000\U0010ffff": true, "\ufffe": false, "\uffff": false, "\xff": false,
		"\xed\xa0\x80": false,
	} {
		if got := text.Allowed(body); got != want {
			t.Errorf("%q: allowed %v, want %v", body, got, want)
		}
	}
}

// What encoding/json wrote is in tables and queues, with bytes that are not UTF-8 and names that occur twice.
func TestRead_TakesWhatEncodingJSONTakes(t *testing.T) {
	t.Parallel()
	type value struct {
		A string           `json:"a"`
		N int64            `json:"n,omitempty"`
		R json.RawMessage  `json:"r,omitempty"`
		T time.Time        `json:"t,omitzero"`
		P *struct{ X int } `json:"p,omitempty"`
	}
	for _, s := range []string{
		`{"a":"x","n":-9007199254740993,"r":{"b":[1, 2]},"t":"2027-03-01T12:00:00.123Z","p":{"X":1}}`,
		"{\"a\":\"\xff\"}", `{"a":"1","a":"2"}`, `{"a":null,"r":null,"p":null}`, `{"new":{"field":1}}`, ` {"a":"\ud800"} `,
		`null`, `{`, `[]`, `{"n":"1"}`, `{"n":1.5}`, `{"n":9223372036854775808}`, `{"t":"yesterday"}`, `{"a":"x"} {}`, ``,
	} {
		var got, want value
		err, wantErr := text.Read([]byte(s), &got), json.Unmarshal([]byte(s), &want)
		if (err != nil) != (wantErr != nil) {
			t.Errorf("%q: %v, and encoding/json: %v", s, err, wantErr)
		} else if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", s, got, want)
		}
	}
}
