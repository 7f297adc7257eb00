package expression_test

import (
	"fmt"
	"strings"
	"testing"

	"punctual/shared/expression"
)

func TestProgram_ShowsTheTextsThatItHolds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"p.n":                                 "",
		"'a'":                                 "=a; whole a",
		"''":                                  "=; whole ",
		"1 + 1":                               "whole 2",
		"'a' + 'b'":                           "=ab (=a) (=b); whole ab",
		"p.x + 'a' + 'b'":                     "=a =b",
		"p.x == 'a' ? 'b' : p.y":              "(=a) =b",
		"{'password': 'a' + 'b', 'u': p.x}":   "(=password) password=ab (=a) (=b) (=u)",
		"[p.x, {'k': ['a', b'b']}]":           "(=k) k=a k=b (=k) (=a) (=b)",
		"p.list.map(x, x + 'a')":              "=a",
		"p.list.filter(x, x == 'a')":          "(=a)",
		"p['a'].contains('b')":                "(=a) (=b)",
		"base64.decode('YWI=') + string(p.x)": "=ab (=YWI=)",
		"['a', 'b'].join('-') + p.x":          "=a-b (=a) (=b) (=-)",
		"['a'].map(x, x + 'b')[0]":            "=ab (=a) (=b); whole ab",
		"p.list.exists(x, ['a'].exists(y, y==x))": "(=a) (=a)",
	} {
		p, wrong := expression.Compile(text, variables)
		if wrong != nil {
			t.Fatalf("%s: %v", text, wrong)
		}
		found, whole, ok := p.Constants()
		var got []string
		for _, c := range found {
			s := c.Name + "=" + c.Text
			if c.Inner {
				s = "(" + s + ")"
			}
			got = append(got, s)
		}
		shown := strings.Join(got, " ")
		if ok {
			shown = strings.TrimPrefix(fmt.Sprintf("%s; whole %s", shown, whole), "; ")
		}
		if shown != want {
			t.Errorf("%s: %s, want %s", text, shown, want)
		}
	}
}

func TestProgram_ShowsTheTextsOfASharedPartOnce(t *testing.T) {
	t.Parallel()
	p, wrong := expression.Compile("[dyn(['a'])]"+strings.Repeat(".map(a,[a,a])", 18), variables)
	if wrong != nil {
		t.Fatal(wrong)
	}
	if found, _, _ := p.Constants(); len(found) == 0 || len(found) > 1000 {
		t.Errorf("%d texts", len(found))
	}
}
