package text

import "testing"

func TestNearest_IsAtMostTwoLettersAwayAndFewerThanThereAre(t *testing.T) {
	t.Parallel()
	words := []string{"task", "payload", "run_at", "delay", "pool", "a", "Europe/Berlin"}
	for word, want := range map[string]string{
		"tusk": "task", "taks": "task", "payloads": "payload", "runat": "run_at", "DELAY": "delay",
		"europe/berln": "Europe/Berlin", "zz": "", "b": "", "pl": "", "parallel": "", "": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
