package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

const decisions = "shared/decisions"

// decisionTitle is the first line of a decision, with or without leading zeros and by any mark after the number.
var decisionTitle = regexp.MustCompile(`^# (\d+)(?::|\.| —)? (\S.*)`)

// unlisted returns a sentence for each decision that the index lacks, or lists under another title.
func unlisted(root fs.FS) ([]string, error) {
	index, err := fs.ReadFile(root, decisions+"/README.md")
	if err != nil {
		return nil, err
	}
	pages, err := fs.Glob(root, decisions+"/[0-9]*.md")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, page := range pages {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			return nil, err
		}
		name := path.Base(page)
		number := strings.SplitN(name, "-", 2)[0]
		first, _, _ := strings.Cut(string(text), "\n")
		title := decisionTitle.FindStringSubmatch(first)
		if title == nil || strings.TrimLeft(title[1], "0") != strings.TrimLeft(number, "0") {
			found = append(found, fmt.Sprintf("%s: its first line is %q; want \"# %s: Title\"", page, first, number))
			continue
		}
		line := fmt.Sprintf("- [%s](%s): %s", number, name, title[2])
		if !strings.Contains("\n"+string(index), "\n"+line+"\n") {
			found = append(found, fmt.Sprintf("%s/README.md lacks the line %q", decisions, line))
		}
	}
	return found, nil
}

func TestDecisions_AreListedByTheirTitles(t *testing.T) {
	t.Parallel()
	found, err := unlisted(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

func TestDecisions_MissingFromTheIndexAreFound(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name, page, index string
		want              int
	}{
		{"listed", "# 0001: Use libraries\n", "- [0001](0001-a.md): Use libraries\n", 0},
		{"not listed", "# 0001: Use libraries\n", "# Decisions\n", 1},
		{"listed under another title", "# 0001: Use libraries\n", "- [0001](0001-a.md): Write it all\n", 1},
		{"listed with words more", "# 0001: Use libraries\n", "- [0001](0001-a.md): Use libraries always\n", 1},
		{"another number in the title", "# 0002: Use libraries\n", "- [0001](0001-a.md): Use libraries\n", 1},
		{"no title", "Use libraries\n", "- [0001](0001-a.md): Use libraries\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, err := unlisted(fstest.MapFS{
				decisions + "/0001-a.md": file(c.page), decisions + "/README.md": file(c.index)})
			if err != nil || len(found) != c.want {
				t.Errorf("found %q, error %v; want %d findings", found, err, c.want)
			}
		})
	}
}
