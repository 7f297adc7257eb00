package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
)

// dataOf makes a folder with three rows, of which change changes the log.
func dataOf(t *testing.T, change func(log []byte) []byte) (folder, log string) {
	t.Helper()
	folder = t.TempDir()
	w, err := memory.Open(folder, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second", "third"} {
		ref := item.Ref{Table: contract.Tasks, PK: "t", SK: name}
		if _, err := w.Table().Write(t.Context(), item.Write{Ref: ref, Name: "test.put",
			Put: item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK}}); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	log = filepath.Join(folder, "00000001.log")
	body, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, change(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, log
}

func TestData_ChecksAndRepairsAFolder(t *testing.T) {
	t.Parallel()
	whole, _ := dataOf(t, func(log []byte) []byte { return log })
	if out := good(t, "data", "check", whole); !strings.Contains(out, "rows of tasks: 3") {
		t.Errorf("a whole folder: %s", out)
	}
	damaged, log := dataOf(
		t,
		func(log []byte) []byte { return bytes.Replace(log, []byte("second"), []byte("sxcond"), 1) },
	)
	s := typed(t.Context(), "", "data", "check", damaged)
	if s.code != exitRefused || !strings.Contains(s.out, log+" is damaged at byte ") ||
		!strings.Contains(s.out, "rows of tasks: 2") || !strings.Contains(s.errs, "punctual data repair "+damaged) {
		t.Errorf("a damaged folder: %+v", s)
	}
	var found memory.Survey
	s = typed(t.Context(), "", "-o", "json", "data", "check", damaged)
	err := json.Unmarshal([]byte(s.out), &found)
	if err != nil || len(found.Damages) != 1 || found.Damages[0].Path != log {
		t.Errorf("as JSON: %v %s", err, s.out)
	}
	s = typed(t.Context(), "", "data", "repair", damaged)
	if kept := filepath.Join(damaged, "damaged-"); s.code != exitDone || !strings.Contains(s.errs, kept) {
		t.Errorf("the repair: %+v", s)
	}
	if out := good(t, "data", "check", damaged); !strings.Contains(out, "rows of tasks: 2") {
		t.Errorf("after the repair: %s", out)
	}
	s = typed(t.Context(), "", "data", "repair", damaged)
	if s.code != exitDone || !strings.Contains(s.errs, "nothing was changed") {
		t.Errorf("a second repair: %+v", s)
	}
	if s := typed(t.Context(), "", "data", "check", filepath.Join(whole, "nowhere")); s.code != exitRefused {
		t.Errorf("a folder that is not there: %+v", s)
	}
}
