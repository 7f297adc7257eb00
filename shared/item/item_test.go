package item

import "testing"

func TestCond_HoldsAsInDynamoDB(t *testing.T) {
	t.Parallel()
	i := Item{"s": "b", "n": int64(5)}
	cases := []struct {
		name string
		cond Cond
		want bool
	}{
		{"exists", Cond{"s", Exists, nil}, true}, {"exists, absent", Cond{"x", Exists, nil}, false},
		{"missing", Cond{"x", Missing, nil}, true}, {"missing, present", Cond{"s", Missing, nil}, false},
		{"equal", Cond{"n", Eq, int64(5)}, true}, {"equal, other", Cond{"n", Eq, int64(6)}, false},
		{"equal, other type", Cond{"n", Eq, "5"}, false},
		{"not equal", Cond{"s", Ne, "c"}, true}, {"not equal, same", Cond{"s", Ne, "b"}, false},
		{"not equal, absent", Cond{"x", Ne, "b"}, true},
		{"less", Cond{"n", Lt, int64(6)}, true}, {"less, equal", Cond{"n", Lt, int64(5)}, false},
		{"less, absent", Cond{"x", Lt, int64(5)}, false},
		{"less or equal", Cond{"n", Le, int64(5)}, true}, {"greater", Cond{"s", Gt, "a"}, true},
		{"greater, equal", Cond{"s", Gt, "b"}, false},
		{"greater or equal", Cond{"s", Ge, "b"}, true}, {"greater or equal, less", Cond{"n", Ge, int64(6)}, false},
		{"in", Cond{"s", In, []string{"a", "b"}}, true}, {"in, not", Cond{"s", In, []string{"a"}}, false},
		{"in, absent", Cond{"x", In, []string{"a"}}, false},
	}
	for _, c := range cases {
		if got := c.cond.Holds(i); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	yes, no := Cond{"s", Exists, nil}, Cond{"x", Exists, nil}
	for name, c := range map[string]struct {
		when []All
		want bool
	}{
		"no condition": {nil, true}, "all of one": {[]All{{yes, yes}}, true}, "one of all fails": {[]All{{yes, no}},
			false},
		"one alternative": {[]All{{no}, {yes}}, true}, "no alternative": {[]All{{no}, {no, yes}}, false},
	} {
		if Any(c.when, i) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
}

func TestWrite_NeverChangesTheOldItem(t *testing.T) {
	t.Parallel()
	old := Item{"pk": "a", "n": int64(1), "s": "x"}
	next := Write{Ref: Ref{PK: "a"}, Set: map[string]any{"s": nil, "t": "y"}, Add: map[string]int64{"n": 2,
		"m": 1}}.Applied(old, "pk", "")
	if old["s"] != "x" || old.Int("n") != 1 {
		t.Error("the old item changed")
	}
	if _, ok := next["s"]; ok || next.Int("n") != 3 || next.Int("m") != 1 || next.Str("t") != "y" {
		t.Errorf("got %v", next)
	}
	made := Write{Ref: Ref{PK: "a", SK: "b"}, Set: map[string]any{"t": "y"}}.Applied(nil, "pk", "sk")
	if made.Str("pk") != "a" || made.Str("sk") != "b" || made.Str("t") != "y" {
		t.Errorf("an update of an absent item made %v", made)
	}
}
