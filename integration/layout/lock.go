package layout

import (
	"fmt"
	"go/ast"
	"slices"
)

// checkLocks checks that no call that takes a context is made while a mutex is held, or inside a sync.Once, which holds
// one. Such a call may wait for a table, a queue or the network; the process that wants the mutex then waits too,
// without a way to give up, and a test in virtual time stops. shared/cache and a channel are what callers can wait on.
func checkLocks(f source) []string {
	if f.test() || within("integration/sim", f.dir) { // the simulation's ledger reads memory, which never waits
		return nil
	}
	var breaches []string
	report := func(call *ast.CallExpr, held string) {
		breaches = append(
			breaches,
			fmt.Sprintf("%s calls %s with a context while %s is held: others wait for it without "+
				"a way to give up; use shared/cache or a channel", f.path(), nameOf(call.Fun), held),
		)
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				lockedCalls(n.Body.List, "", report)
			}
		case *ast.FuncLit:
			lockedCalls(n.Body.List, "", report)
		case *ast.CallExpr:
			if held := onceOf(n); held != "" {
				for _, a := range n.Args {
					if body, ok := a.(*ast.FuncLit); ok {
						lockedCalls(body.Body.List, held, report)
					}
				}
			}
		}
		return true
	})
	return breaches
}

// lockedCalls reports the calls with a context among the statements that run while a mutex is held. held names the
// mutex that is held before the first statement, "" for none. It returns what is held after the last one; a nested
// block that unlocks is taken to return.
func lockedCalls(statements []ast.Stmt, held string, report func(*ast.CallExpr, string)) string {
	for _, s := range statements {
		if mutex, locks := lockOf(s); mutex != "" {
			held = ""
			if locks {
				held = mutex
			}
			continue
		}
		for _, nested := range nestedIn(s) {
			lockedCalls(nested, held, report)
		}
		_, isCase := s.(*ast.CaseClause)
		_, isComm := s.(*ast.CommClause)
		if held == "" || isCase || isComm {
			continue
		}
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt, *ast.GoStmt, *ast.DeferStmt: // nestedIn has the blocks
				return false
			case *ast.FuncLit:
				lockedCalls(n.Body.List, held, report)
			case *ast.CallExpr:
				if takesContext(n) {
					report(n, held)
				}
			}
			return true
		})
	}
	return held
}

// nestedIn returns the lists of statements in a statement.
func nestedIn(s ast.Stmt) (lists [][]ast.Stmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return [][]ast.Stmt{s.List}
	case *ast.LabeledStmt:
		return nestedIn(s.Stmt)
	case *ast.ForStmt:
		return nestedIn(s.Body)
	case *ast.RangeStmt:
		return nestedIn(s.Body)
	case *ast.IfStmt:
		lists = nestedIn(s.Body)
		if s.Else != nil {
			lists = append(lists, nestedIn(s.Else)...)
		}
	case *ast.SwitchStmt:
		return nestedIn(s.Body)
	case *ast.TypeSwitchStmt:
		return nestedIn(s.Body)
	case *ast.SelectStmt:
		return nestedIn(s.Body)
	case *ast.CaseClause:
		return [][]ast.Stmt{s.Body}
	case *ast.CommClause:
		return [][]ast.Stmt{s.Body}
	}
	return lists
}

// lockOf returns the mutex that a statement locks or unlocks; "" for any other statement. A deferred Unlock holds it
// to the end of the function, so it is no unlocking.
func lockOf(s ast.Stmt) (mutex string, locks bool) {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return "", false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return "", false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	switch method.Sel.Name {
	case "Lock", "RLock":
		return nameOf(method.X), true
	case "Unlock", "RUnlock":
		return nameOf(method.X), false
	}
	return "", false
}

// onceOf returns the function of package sync that a call hands a function to, or Do of a sync.Once; "" for any other
// call.
func onceOf(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "sync" &&
		slices.Contains([]string{"OnceFunc", "OnceValue", "OnceValues"}, f.Sel.Name) {
		return "sync." + f.Sel.Name
	}
	if f.Sel.Name == "Do" && len(call.Args) == 1 {
		if _, ok := call.Args[0].(*ast.FuncLit); ok {
			return nameOf(f)
		}
	}
	return ""
}

// takesContext reports whether a call is handed a context: by this repository's habit a variable that is named ctx, or
// what a function of package context makes.
func takesContext(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(a ast.Expr) bool {
		switch a := a.(type) {
		case *ast.Ident:
			return a.Name == "ctx"
		case *ast.CallExpr:
			f, ok := a.Fun.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			pkg, ok := f.X.(*ast.Ident)
			return f.Sel.Name == "Context" || ok && pkg.Name == "context"
		}
		return false
	})
}

// nameOf writes a name as the source does; of what is no name only its last part.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return nameOf(e.X)
	}
	return "…"
}
