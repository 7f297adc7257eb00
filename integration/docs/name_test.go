package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// alarmIs finds what has the form of an alarm's name in code or bold: the last word is one that alarms end with.
var alarmIs = regexp.MustCompile(
	"[`*| ]([a-z]+(?:-[a-zA-Z*]+)*-(?:silent|slow|behind|errors|throttled|" +
		"dropped|failed|late|critical|warn|old|\\*))[`*|, ]",
)

// pages lists the documents that speak of alarms and logs.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"../../infra/runbook/*.md", "../../infra/*.md", "../../shared/docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// alarmNames are those of the synthesized templates, which a test of infra/stack keeps in a file.
func alarmNames(t *testing.T) (names []string) {
	t.Helper()
	body, err := os.ReadFile("../../infra/testdata/alarms.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]struct{ Name string }
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	for _, alarms := range all {
		for _, a := range alarms {
			names = append(names, a.Name)
		}
	}
	return names
}

// unknownAlarms lists the names in a text that have the form of an alarm's and are neither one nor a runbook page.
func unknownAlarms(text string, names []string) (unknown []string) {
	for _, found := range alarmIs.FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(found[1], "NAME", "*")
		if _, err := os.Stat("../../infra/runbook/" + name + ".md"); err == nil {
			continue
		}
		known := strings.HasPrefix(name, "canary-") // of the flow stack; these notify no one
		for _, is := range names {
			match, err := path.Match(name, is)
			known = known || err == nil && match
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func TestDocuments_NameExistingAlarms(t *testing.T) {
	t.Parallel()
	names := alarmNames(t)
	for _, page := range pages(t) {
		body, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range unknownAlarms(string(body), names) {
			t.Errorf("%s speaks of the alarm %s, which no template has", page, name)
		}
	}
	if got := unknownAlarms("| **promoter-silent**, `forecast-silent` |", names); len(got) != 1 ||
		got[0] != "forecast-silent" {
		t.Errorf("of a planted name the check finds %q", got)
	}
}

// lineIs finds the text of a log line in a page: in a query of Logs Insights, or named as a line of the log.
var lineIs = regexp.MustCompile("msg = \"([^\"]+)\"|msg like /([^/]+)/|(?:the line|lines) `([^`]+)`|writes `([^`]+)`")

func TestDocuments_SearchLogsForLinesThatAreWritten(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, dir := range []string{"functions", "workers", "shared"} {
		err := filepath.WalkDir("../../"+dir, func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			body, err := os.ReadFile(file)
			code.Write(body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	written, found := code.String(), 0
	for _, page := range pages(t) {
		body, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lineIs.FindAllStringSubmatch(string(body), -1) {
			found++
			if line := strings.Join(m[1:], ""); !strings.Contains(written, line) {
				t.Errorf("%s searches logs for %q, which no code writes", page, line)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d lines were found in the pages", found)
	}
}
