package stack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/shared/contract"
)

// TestWorkers_MayDoTheSameWithoutACluster holds that what is proved of workers on an emulator is
// proved of those in the cluster.
func TestWorkers_MayDoTheSameWithoutACluster(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join(emulator().out, emulator().settings.Prefix+"-crew.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var roles struct{ Resources map[string]object }
	if err := json.Unmarshal(body, &roles); err != nil {
		t.Fatal(err)
	}
	// statements of the policy of a pool's role
	statements := func(resources map[string]object, pool string) string {
		for id, r := range resources {
			if r["Type"] == "AWS::IAM::Policy" && strings.Contains(strings.ToLower(id), "worker"+pool+"role") {
				return compact(at(r, "Properties.PolicyDocument.Statement"))
			}
		}
		t.Fatalf("no role of the %s pool", pool)
		return ""
	}
	for _, pool := range contract.Pools {
		if got, want := statements(roles.Resources, pool), statements(prod().template("fleet").resources,
			pool); got != want {
			t.Errorf("workers of %s may do\n%s\nand in the cluster\n%s", pool, got, want)
		}
	}
}
