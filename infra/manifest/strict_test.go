package manifest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// strictly has Kubernetes' own types decode objects; they live in a module of their own, for
// compiling them takes half a minute.
func strictly(t *testing.T, objects []Object) (said string, ok bool) {
	t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "testdata/strict", ".")
	cmd.Stdin = bytes.NewReader(text)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("the decoder does not run: %v\n%s", err, problems.String())
	}
	return string(out), err == nil
}

func TestObjects_DecodeStrictlyIntoKubernetesTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Kubernetes' types")
	}
	t.Parallel()
	if said, ok := strictly(t, everything()); !ok || !strings.Contains(said, "decoded 12 of 17") {
		t.Errorf(
			"the types of Kubernetes say:\n%s\nwant all decoded but two node pools, two scalers and their identity",
			said)
	}
	misspelt, mistyped := pools()[0].Deployment(), pools()[1].Deployment()
	at(t, misspelt, "spec.template.spec").(Object)["terminationGracePeriod"] = 5
	at(t, mistyped, "spec.template.spec.securityContext").(Object)["runAsNonRoot"] = "yes"
	silent := pools()[0].Scaler("Punctual/dev", "slots_wanted")
	at(t, silent, "spec.advanced.scalingModifiers").(Object)["formula"] = "max(critical + high + normal + low, wanted)"
	said, ok := strictly(t, []Object{misspelt, mistyped, silent})
	if ok {
		t.Error("an unknown field is taken")
	}
	for _, want := range []string{`unknown field "spec.template.spec.terminationGracePeriod"`, "runAsNonRoot",
		"the formula says"} {
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, and nothing of %s", said, want)
		}
	}
}
