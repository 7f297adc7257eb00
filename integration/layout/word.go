package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wordList holds the words that no identifier and no description uses, as words.txt lists them.
type wordList struct {
	phrases  []phrase
	openings []string // words that begin no description, in lower case
}

// phrase is one entry: a word, or words that follow each other.
type phrase struct {
	words   []string // in lower case; the first in all its forms is a finding
	instead string
}

// readWords reads the lines WORD, WORD<TAB>use instead. Brackets say in which meaning a word goes. A word with … opens
// no description.
func readWords(text string) wordList {
	var list wordList
	for line := range strings.Lines(text) {
		left, instead, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		left, _, _ = strings.Cut(left, " (")
		for word := range strings.SplitSeq(left, ",") {
			word = strings.ToLower(strings.TrimSpace(word))
			if opening, ok := strings.CutSuffix(word, " …"); ok {
				list.openings = append(list.openings, opening)
				continue
			}
			list.phrases = append(list.phrases, phrase{strings.Fields(word), instead})
		}
	}
	return list
}

// find returns the first phrase that is among the words (in lower case), and how it is written there.
func (l wordList) find(words []string) (string, phrase, bool) {
	for i := range words {
		for _, p := range l.phrases {
			if n := len(p.words); i+n <= len(words) && p.is(words[i:i+n]) {
				return strings.Join(words[i:i+n], " "), p, true
			}
		}
	}
	return "", phrase{}, false
}

func (p phrase) is(words []string) bool {
	return slices.Contains(forms(p.words[0]), words[0]) && slices.Equal(p.words[1:], words[1:])
}

// forms returns the plain inflections of a word, such as: name, names, named, naming.
func forms(word string) []string {
	if slices.Contains(uninflected, word) {
		return []string{word}
	}
	base := strings.TrimSuffix(word, "s")
	stem := strings.TrimSuffix(base, "e")
	plural := base + "s"
	if strings.HasSuffix(base, "ch") {
		plural = base + "es"
	}
	return []string{word, base, plural, stem + "ed", stem + "ing", base + "ing"}
}

// uninflected are the words that are listed in one form: another form is another word.
var uninflected = []string{
	"again", "beside", "told", "is", "what", "by", "put", "set", "let", "fell", "hiding", "deciding", "forgetting",
	"arming", "paying", "somebody", "nobody", "whoever",
}

// meant lists the words that go in one meaning only, and the folders where they have it.
var meant = map[string][]string{
	// Grants of IAM; elsewhere these are verbs of the glossary or ordinary ones.
	"hiding": {"infra"}, "deciding": {"infra"}, "forgetting": {"infra"}, "arming": {"infra"},
	// The observability stack; elsewhere it is to follow what changes, as in kubectl.
	"watch": {"infra"},
	// Waiters; elsewhere it is a line of text.
	"line": {"functions/engine", "shared/store", "shared/run"},
	// A value; elsewhere it is a word of a text.
	"word": {"functions/api/spec"},
	// REST, and what remains, are no findings.
	"rest": {},
}

// splitName returns the parts of a name in lower case: HTTPServer_inPlace is http, server, in, place.
func splitName(name string) []string {
	var parts []string
	var part []rune
	flush := func() {
		if len(part) > 0 {
			parts, part = append(parts, strings.ToLower(string(part))), nil
		}
	}
	runes := []rune(strings.ReplaceAll(name, "CloudWatch", "")) // a product's name
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r):
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if i > 0 && (unicode.IsLower(runes[i-1]) || after) {
				flush()
			}
		}
		part = append(part, r)
	}
	flush()
	return parts
}

// names returns the names that f declares and that hold a listed word. A test's name is checked up to the underscore:
// what follows is a sentence.
func (l wordList) names(f source) []finding {
	if ast.IsGenerated(f.syntax) {
		return nil
	}
	var found []finding
	check := func(name string) {
		subject, _, _ := strings.Cut(name, "_")
		if at, p, ok := l.find(splitName(subject)); ok && applies(p, f.dir) {
			found = append(found, finding{f.dir + " " + name, fmt.Sprintf("%q goes; use %s", at, p.instead)})
		}
	}
	check(f.pkg)
	check(strings.TrimSuffix(f.name, ".go"))
	for _, id := range declared(f.syntax) {
		check(id.Name)
	}
	return found
}

// finding is what breaks the list of words: where, and why.
type finding struct{ where, why string }

func applies(p phrase, dir string) bool {
	folders, limited := meant[p.words[0]]
	return !limited || inAny(folders, dir)
}

// declared returns the names that a file declares, those of parameters and variables of functions too.
func declared(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
			names = append(names, id)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ImportSpec:
			if n.Name != nil {
				add(n.Name)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		case *ast.LabeledStmt:
			add(n.Label)
		}
		return true
	})
	return names
}

// texts returns the descriptions of f that hold a listed word or begin with a dangling one.
func (l wordList) texts(f source) []finding {
	if f.test() {
		return nil
	}
	var found []finding
	for _, text := range descriptions(f.syntax) {
		words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
		if len(words) == 0 {
			continue
		}
		if slices.Contains(l.openings, words[0]) {
			why := fmt.Sprintf("%q begins with %q; begin with the noun", text, words[0])
			found = append(found, finding{f.path(), why})
			continue
		}
		if at, p, ok := l.find(words); ok && applies(p, f.dir) {
			found = append(found, finding{f.path(), fmt.Sprintf("%q holds %q; use %s", text, at, p.instead)})
		}
	}
	return found
}

// descriptions returns what a file says in doc: tags and in the descriptions of fields.
func descriptions(file *ast.File) []string {
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				tag, _ := strconv.Unquote(n.Tag.Value)
				texts = append(texts, reflect.StructTag(tag).Get("doc"))
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) < 2 {
				return true
			}
			pkg, _ := s.X.(*ast.Ident)
			switch {
			case pkg == nil:
			case pkg.Name == "field" || pkg.Name == "spec":
				if about := literal(n.Args[1]); strings.Contains(about, " ") {
					texts = append(texts, about)
				}
			case pkg.Name == "rest" && len(n.Args) > summaryAt: // a route
				texts = append(texts, literal(n.Args[summaryAt]))
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(describing, key.Name) {
				texts = append(texts, literal(n.Value))
			}
		}
		return true
	})
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// summaryAt is where rest.Get and its like take the summary of a route.
const summaryAt = 3

// describing are the fields of routes and documents that hold a description.
var describing = []string{"Summary", "About", "Description", "Doc"}

// literal returns the text of a constant, or of a sum that begins with one; "" for all others.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

// commented are the first words of the entries that no comment uses. The others have an ordinary meaning, too: a place,
// a line, to look.
var commented = []string{
	"judge", "tell", "told", "by", "owes", "debt", "paying", "beside", "stands", "somebody", "nobody", "whoever",
	"fall", "fell", "put", "set", "allowance", "twin", "crew", "courier", "misfit", "mistake", "is", "what",
}

// comments returns the comments of f that hold a listed word.
func (l wordList) comments(f source) []finding {
	if ast.IsGenerated(f.syntax) {
		return nil
	}
	var found []finding
	for _, group := range f.syntax.Comments {
		if why, ok := l.prose(group.Text()); ok {
			found = append(found, finding{f.path(), why})
		}
	}
	return found
}

// documents are patterns of the pages that hold no listed word, but for names of stored attributes between backticks.
var documents = []string{
	"README.md", "CONTRIBUTING.md", "shared/job/PROTOCOL.md", "shared/docs/*.md", "infra/*.md", "infra/runbook/*.md",
	"integration/*.md",
}

// quoted is what a text quotes: code, and the fences around it.
var quoted = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

// prose finds a listed word in a comment or in the text of a document.
func (l wordList) prose(text string) (why string, found bool) {
	list := wordList{phrases: slices.DeleteFunc(slices.Clone(l.phrases), func(p phrase) bool {
		return !slices.Contains(commented, p.words[0])
	})}
	// A hyphen joins: set-aside is the name of an alarm.
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' })
	at, p, found := list.find(words)
	return fmt.Sprintf("%q holds %q; use %s", text, at, p.instead), found
}
