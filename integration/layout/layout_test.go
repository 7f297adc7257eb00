package layout

import (
	"os"
	"os/exec"
	"testing"
)

const root = "../.."

func TestLayout_HoldsInThisRepository(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("only %d Go files found at %s: this test reads the wrong folder", len(files), root)
	}
	for _, breach := range check(files) {
		t.Error(breach)
	}
}

func TestLayout_HasOnlyListedNamesAtTheTop(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !ignored(e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, breach := range checkTop(names) {
		t.Error(breach)
	}
}

// ignored reports whether git ignores name at the root, such as what a build left there. Without
// git nothing is ignored.
func ignored(name string) bool {
	return len(checkTop([]string{name})) > 0 && exec.Command("git", "-C", root, "check-ignore", "-q", name).Run() == nil
}
