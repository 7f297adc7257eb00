package job

import (
	"encoding/json"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/text"
)

// nasty holds what no queue takes, and markup.
const nasty = "a\x00b\x0b\x1f \uffff\ufffe \xff\xed\xa0\x80 <&>"

//proof:of F11
func TestContents_KeepMarkupUnescaped(t *testing.T) {
	t.Parallel()
	markup := strings.Repeat("<", 10_000)
	r := scheduled()
	for name, got := range map[string]string{
		"a result on the claim": EncodeOutcome(Outcome{Kind: OutcomeSucceeded,
			Result: json.RawMessage(`"` + markup + `"`)}),
		"an error on the claim": EncodeOutcome(Outcome{Kind: OutcomeFailed,
			Error: &Reason{Code: CodeHandler, Message: markup}}),
		"a progress note": Heartbeat(r.Key, 1, 1, noon, noon,
			&Progress{Note: markup, At: noon}).Set["progress"].(string),
		"an attempt of its own": r.PutAttempt(Attempt{Attempt: 1, Error: &Reason{Message: markup}}).Put.Str("body"),
		"an attempt on the row": (&Row{Attempts: []Attempt{{Attempt: 1,
			Error: &Reason{Code: "c", Message: "ü" + markup}}}}).encodeAttempts(),
		"a pause's reason": Pause{Scope: PauseAll, Reason: markup}.Item("acme").Str("body"),
		"a task's payload schema": Task{Name: "t",
			PayloadSchema: json.RawMessage(`{"title":"` + markup + `"}`)}.Item("acme").Str("body"),
		"an outcome's broken JSON": EncodeOutcome(Outcome{Kind: OutcomeSucceeded, Result: json.RawMessage(`{`),
			Error: &Reason{Message: markup}}),
	} {
		if extra := len(got) - len(markup); extra > 300 {
			t.Errorf("%s of %d bytes takes %d", name, len(markup), len(got))
		}
	}
}

//proof:of F01
func TestEncodeOutcome_IsSendableAndFitsAMessageWhateverItHolds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(nasty, contract.MaxErrorMessage)[:contract.MaxErrorMessage]
	for name, o := range map[string]Outcome{
		"an error": {Kind: OutcomeFailed, Worker: nasty, Error: &Reason{Code: nasty, Message: long}},
		"a raw result": {Kind: OutcomeSucceeded,
			Result: json.RawMessage(`{"a":"` + strings.Repeat("\uffff", contract.MaxClaimResult/3) + `"}`)},
		"an escape": {Kind: OutcomeSucceeded, Result: json.RawMessage(`"\ud800 \uffff"`)},
	} {
		got := EncodeOutcome(o)
		if !text.Allowed(got) {
			t.Errorf("an outcome with %s holds characters that no queue takes", name)
		}
		if len(got) > 64<<10 {
			t.Errorf("an outcome with %s takes %d bytes", name, len(got))
		}
		if back, err := DecodeOutcome([]byte(got)); err != nil || back.Kind != o.Kind {
			t.Errorf("an outcome with %s cannot be read back: %v", name, err)
		}
	}
}
