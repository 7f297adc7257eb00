package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// Stacks that the documents name are deployed alone: a roll-back of the flow stack must not take the data stack along.
func TestMake_DeploysNamedStacksAlone(t *testing.T) {
	t.Parallel()
	for words, alone := range map[string]bool{
		"deploy STACKS=punctual-flow": true, "diff STACKS=punctual-flow": true, "destroy STACKS=punctual-fleet": true,
		"deploy": false, "diff": false, "destroy": false,
	} {
		args := append([]string{"-n", "-C", root}, strings.Fields(words)...)
		out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput()
		if err != nil {
			t.Errorf("make %s: %v\n%s", words, err, out)
			continue
		}
		verb, _, _ := strings.Cut(words, " ")
		var command string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "node infra/cdk.js "+verb) {
				command = line
			}
		}
		if command == "" || strings.Contains(command, " --exclusively ") != alone {
			t.Errorf("make %s runs %q; alone: %v", words, command, alone)
		}
	}
}
