package layout

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// checkWriteNames checks that no file repeats the text of a name that another package gives to its writes or calls: a
// renamed write would leave a test that waits for the old name, and passes. Each name is a constant where it is made;
// that of a write which only its own package knows may be a text.
func checkWriteNames(files []source) []string {
	makers := map[string]string{} // folder of the package that makes a write, by the write's name
	for _, f := range files {
		if f.test() || within("functions/stagetest", f.dir) || within("shared/conformance", f.dir) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, name := range writeNamesIn(f, n) {
				makers[name] = f.dir
			}
			return true
		})
	}
	var breaches []string
	for _, f := range files {
		// The actions that users see have names of the same form, and the generated client lists them.
		if within("shared/audit", f.dir) || within("shared/client/rest", f.dir) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if dir, ok := makers[textOf(n)]; ok && dir != f.dir {
				breaches = append(breaches, fmt.Sprintf("%s repeats %q, the name of a write of %s: use the constant",
					f.path(), textOf(n), dir))
			}
			return true
		})
	}
	return breaches
}

// writeNamesIn returns the names that a node itself gives: constants whose names begin with Write, the constants of
// shared/memory that name calls, and texts that are the name of an item.Write.
func writeNamesIn(f source, n ast.Node) (names []string) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, id := range n.Names {
			named := strings.HasPrefix(id.Name, "Write") || within("shared/memory", f.dir) && id.IsExported()
			if named && i < len(n.Values) && textOf(n.Values[i]) != "" {
				names = append(names, textOf(n.Values[i]))
			}
		}
	case *ast.CompositeLit:
		if kind, ok := n.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Write" {
			return nil
		}
		for _, e := range n.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok || textOf(field.Value) == "" {
				continue
			}
			if key, ok := field.Key.(*ast.Ident); ok && key.Name == "Name" {
				names = append(names, textOf(field.Value))
			}
		}
	}
	return names
}

// textOf returns the text of a literal that looks like the name of a write, such as row.accept; "" of all else.
func textOf(n ast.Node) string {
	if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, ".") {
			return text
		}
	}
	return ""
}
