package main

import (
	"strings"
	"testing"
)

// minimal is a document of each kind that has a put from a file, without its name.
var minimal = map[string]string{
	"exclusion": "weekly: [sat, sun]\nyearly: [\"12-25\"]\n",
	"task":      "executor: echo\n",
	"webhook":   "url: https://example.com/hook\nevents: [job.dead]\nenabled: false\n",
	"dag":       "nodes: {a: {task: echo}}\n",
	"schedule":  "calendar: {every: 1h}\njob: {task: echo}\n",
}

func TestResources_AreListedShownAndDeleted(t *testing.T) {
	t.Parallel()
	for _, r := range resources {
		t.Run(r.kind+" is listed, shown and deleted", func(t *testing.T) {
			t.Parallel()
			name := fresh("cli-resource")
			switch r.kind {
			case "limit":
				good(t, "limit", "put", name, "--max-running", "5")
			case "dag", "schedule":
				good(t, r.kind, "apply", "-f", file(t, "name: "+name+"\n"+minimal[r.kind]))
			default:
				good(t, r.kind, "put", "-f", file(t, "name: "+name+"\n"+minimal[r.kind]))
			}
			if out := good(t, r.kind, "ls", "-o", "name"); !strings.Contains("\n"+out, "\n"+name+"\n") {
				t.Errorf("ls: %s", out)
			}
			head := strings.ToUpper(r.kind) + " "
			if out := good(t, r.kind, "get", name); !strings.HasPrefix(out, head) || !strings.Contains(out, "\n"+name) {
				t.Errorf("get: %s", out)
			}
			if v := object(t, r.kind, "show", name); v["name"] != name {
				t.Errorf("show, which is get: %v", v)
			}
			bad(t, exitRefused, "nobody: not_found", r.kind, "delete", "nobody", name)
			bad(t, exitRefused, "not_found", r.kind, "get", name)
			bad(t, exitRefused, "not_found", r.kind, "rm", name)
			bad(t, exitUsage, "punctual "+r.kind+" get --help", r.kind, "get")
		})
	}
}

func TestExclusion_IsShownByItsDaysAndKeptWhileItIsUsed(t *testing.T) {
	t.Parallel()
	days := fresh("cli-days")
	out := good(t, "exclusion", "put", "-f", file(t, "name: "+days+"\nweekly: [sat]\nyearly: [\"12-25\"]\n"+
		"dates: [\"2027-05-01\"]\nranges: [{from: \"2027-12-24\", to: \"2027-12-26\"}]\nmove: next\n"))
	if !strings.Contains(out, "sat, 12-25, 2027-05-01, 2027-12-24 to 2027-12-26") || !strings.Contains(out, "next") {
		t.Errorf("%s", out)
	}
	schedule := fresh("cli-days")
	good(t, "schedule", "apply", "-f", file(t, "name: "+schedule+"\ncalendar: {every: 9h, exclude: ["+days+
		"]}\njob: {task: echo}\n"))
	bad(t, exitRefused, schedule, "exclusion", "delete", days)
	bad(t, exitUsage, "line 2, column 10: /weekly/0", "exclusion", "put", "-f", file(t,
		"name: "+days+"\nweekly: [someday]\n"))
}
