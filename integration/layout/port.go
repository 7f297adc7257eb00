package layout

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// portFolders hold the ports of the table and of the queues.
var portFolders = []string{"shared/store", "shared/message"}

// checkPorts checks that a method of a port is declared in no second interface, where its documentation would be
// repeated and differ in time. A method is the same if its name and types are.
func checkPorts(files []source) []string {
	first := map[string]string{} // by method: the port that declares it
	var breaches []string
	for _, ports := range []bool{true, false} {
		for _, f := range files {
			if isPortFile(f) != ports {
				continue
			}
			for _, m := range declaredMethods(f) {
				port, known := first[m.signature]
				if known && m.owner != "store.Table" { // the store is built on it
					breaches = append(breaches, fmt.Sprintf("%s declares %s, a method of the port %s: embed the port, "+
						"so that the method is documented once", f.path(), m.name, port))
				}
				if ports && !known {
					first[m.signature] = m.owner
				}
			}
		}
	}
	return breaches
}

// isPortFile reports whether a file declares ports.
func isPortFile(f source) bool {
	return slices.Contains(portFolders, f.dir) && strings.HasPrefix(f.name, "port")
}

// method is a method that an interface declares itself.
type method struct {
	owner, name string // owner is the package and name of the interface; only the package if it has no name
	signature   string // the name, and the types without their packages, which files import under several names
}

// declaredMethods returns the methods that the interfaces of a file declare themselves.
func declaredMethods(f source) (methods []method) {
	owner := f.pkg
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			owner = f.pkg + "." + n.Name.Name
		case *ast.InterfaceType:
			for _, field := range n.Methods.List {
				typ, ok := field.Type.(*ast.FuncType)
				if !ok {
					continue
				}
				for _, name := range field.Names {
					methods = append(methods, method{owner, name.Name, name.Name + signatureOf(typ)})
				}
			}
		}
		return true
	})
	return methods
}

// signatureOf writes the types of parameters and results, one for each name.
func signatureOf(typ *ast.FuncType) string {
	var types []string
	for _, list := range []*ast.FieldList{typ.Params, typ.Results} {
		types = append(types, "|")
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for range max(1, len(field.Names)) {
				types = append(types, typeOf(field.Type))
			}
		}
	}
	return strings.Join(types, " ")
}

// typeOf writes a type without the packages of its names.
func typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeOf(e.X)
	case *ast.ArrayType:
		return "[]" + typeOf(e.Elt)
	case *ast.Ellipsis:
		return "..." + typeOf(e.Elt)
	case *ast.MapType:
		return "map[" + typeOf(e.Key) + "]" + typeOf(e.Value)
	case *ast.FuncType:
		return "func" + signatureOf(e)
	case *ast.IndexExpr:
		return typeOf(e.X) + "[" + typeOf(e.Index) + "]"
	case *ast.IndexListExpr:
		types := typeOf(e.X)
		for _, i := range e.Indices {
			types += "," + typeOf(i)
		}
		return types
	}
	return fmt.Sprintf("%T", e)
}
