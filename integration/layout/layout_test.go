package layout

import (
	"os"
	"os/exec"
	"testing"
)

const root = "../.."

func TestTheRepositoryKeepsItsLayout(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("only %d Go files found at %s: this test looks at the wrong place", len(files), root)
	}
	for _, breach := range judge(files) {
		t.Error(breach)
	}
}

func TestTheTopLevelIsFixed(t *testing.T) {
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
	for _, breach := range judgeTop(names) {
		t.Error(breach)
	}
}

// ignored reports whether git passes over name at the root: what a build left
// there is not layout. Without git everything counts.
func ignored(name string) bool {
	return len(judgeTop([]string{name})) > 0 && exec.Command("git", "-C", root, "check-ignore", "-q", name).Run() == nil
}
