package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lastRelease is the newest version of shared/release and its commit.
func lastRelease(t *testing.T) (version, commit string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "shared/release"))
	if err != nil {
		t.Fatal(err)
	}
	var newest []int
	for _, e := range entries {
		var numbers []int
		for part := range strings.SplitSeq(e.Name(), ".") {
			if n, err := strconv.Atoi(part); err == nil {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) == 3 && slices.Compare(numbers, newest) > 0 {
			newest, version = numbers, e.Name()
		}
	}
	body, err := os.ReadFile(filepath.Join(root, "shared/release", version))
	if err != nil {
		t.Fatal(err)
	}
	return version, strings.TrimSpace(string(body))
}

// consumers are the functions that read what others have written into queues, the stream and tables.
var consumers = []string{"status", "stream", "dispatch", "sweeper"}

// released returns a folder of bootstraps in which the consumers are those of the last release, built from its
// commit, and the other functions are those that are deployed.
func (d *deployment) released(t *testing.T) string {
	t.Helper()
	into := filepath.Join(d.folder, "functions-released")
	if _, err := os.Stat(into); err == nil { // another test has built it
		return into
	}
	version, commit := lastRelease(t)
	source := filepath.Join(d.folder, "released")
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	archive, err := exec.CommandContext(t.Context(), "git", "-C", root, "archive", commit).Output()
	if err != nil {
		t.Fatalf(
			"the release %s is made of the commit %s, which this clone lacks; a whole clone has it: %v",
			version,
			commit,
			err,
		)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpacking the release %s: %v\n%s", version, err, out)
	}
	if err := os.CopyFS(into, os.DirFS(d.functions())); err != nil {
		t.Fatal(err)
	}
	for _, name := range consumers {
		if _, err := d.runIn(t.Context(), source, "go", "build", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o",
			filepath.Join(into, name, "bootstrap"), "./functions/"+name+"/lambda"); err != nil {
			t.Fatalf("building %s of the release %s: %v", name, version, err)
		}
	}
	return into
}
