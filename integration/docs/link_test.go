package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)`)
	inCode  = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	outside = regexp.MustCompile(`^[a-z]+:`) // https: and the like, which no test may ask
)

// prose is a page without its blocks and code, where brackets are no links.
func prose(text string) string {
	var b strings.Builder
	open := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			open = !open
		} else if !open && !strings.HasPrefix(line, "    ") {
			b.WriteString(inCode.ReplaceAllStringFunc(line, func(code string) string {
				return strings.NewReplacer("[", " ", "]", " ").Replace(code)
			}))
		}
	}
	return b.String()
}

// anchors are the names that a git host gives to the headings of a page.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(prose(text), -1) {
		words := m[1]
		if l := link.FindStringSubmatch(words); l != nil {
			words = strings.ReplaceAll(words, "]("+l[1]+")", "]")
		}
		var name strings.Builder
		for _, r := range strings.ToLower(words) {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				name.WriteRune(r)
			case r == ' ':
				name.WriteByte('-')
			}
		}
		it := name.String()
		for n := 1; all[it]; n++ {
			it = fmt.Sprintf("%s-%d", name.String(), n)
		}
		all[it] = true
	}
	return all
}

// dead says why a link of the page at from leads nowhere; "" if it leads somewhere.
func dead(from, to string) string {
	if outside.MatchString(to) {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	at := from
	if file != "" {
		at = path.Join(path.Dir(from), file)
	}
	if strings.HasPrefix(at, "..") || strings.HasPrefix(file, "/") {
		return "it leaves the repository"
	}
	at = filepath.Join(root, filepath.FromSlash(at))
	if _, err := os.Stat(at); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(at)
	if err != nil || !anchors(string(text))[anchor] {
		return "there is no such heading"
	}
	return ""
}

func TestLinks_LeadSomewhere(t *testing.T) {
	t.Parallel()
	n := 0
	for _, page := range markdown(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(prose(string(text)), -1) {
			n++
			if why := dead(page, m[1]); why != "" {
				t.Errorf("%s links to %s: %s", page, m[1], why)
			}
		}
	}
	t.Logf("%d links", n)
	if n < 30 {
		t.Errorf("only %d links are there: this test reads the wrong lines", n)
	}
}

func TestLinks_AreFoundDead(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"README.md": "", "README.md#punctual": "", "shared": "", "https://example.com": "",
		"READYOU.md": "there is no such file", "README.md#nothing": "there is no such heading",
		"../other/README.md": "it leaves the repository", "/etc": "it leaves the repository",
	} {
		if got := dead("CONTRIBUTING.md", to); got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
	text := "[a](b.md) `[no](c.md)` ![i](d.svg)\n```sh\n[no](e.md)\n```\n## A word, `code`: *more*\n"
	found := link.FindAllStringSubmatch(prose(text), -1)
	if len(found) != 2 || found[0][1] != "b.md" || found[1][1] != "d.svg" {
		t.Errorf("%v", found)
	}
	if got := anchors(text); len(got) != 1 || !got["a-word-code-more"] {
		t.Errorf("%v", got)
	}
}

// The index leads to every page of its folder.
func TestIndex_NamesEveryPage(t *testing.T) {
	t.Parallel()
	const index = "shared/docs/README.md"
	text, err := os.ReadFile(filepath.Join(root, index))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		name, ours := strings.CutPrefix(page, "shared/docs/")
		if ours && page != index && !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("%s has no link to %s", index, name)
		}
	}
}
