package docs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/shared/contract"
)

var (
	commanded = regexp.MustCompile("`((?:make|kubectl) [^`\n]+)`")
	variable  = regexp.MustCompile(`^([A-Z]+)=`)
	worded    = regexp.MustCompile(`(?:[^\s']|'[^']*')+`) // as a shell splits, quotes included
	space     = regexp.MustCompile(`-n (\S+)`)
	worker    = regexp.MustCompile(`\bworker-([a-z]+)`)
	kind      = regexp.MustCompile(`\b(?:get|describe|scale|restart) ([a-z][a-z,]*)`)
)

// commandsOf returns the commands of make and kubectl that are within the lines of a page and in its blocks for an
// account.
func commandsOf(t *testing.T, path string) []string {
	t.Helper()
	whole := text(t, path)
	var all []string
	for _, m := range commanded.FindAllStringSubmatch(whole, -1) {
		all = append(all, m[1])
	}
	in, err := blocks(whole)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, b := range in {
		if b.info != account {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.body, "\\\n", " ")) {
			if strings.HasPrefix(line, "make ") {
				all = append(all, strings.TrimSpace(line))
			}
		}
	}
	return all
}

// unknown says what of a command of make is not there: its target, a variable, or a setting.
func unknown(t *testing.T, command string) string {
	t.Helper()
	makefile := text(t, "Makefile")
	if m := made.FindStringSubmatch(command); m == nil || !strings.Contains(makefile, "\n"+m[1]+":") {
		return "its target"
	}
	for _, word := range worded.FindAllString(command, -1) {
		m := variable.FindStringSubmatch(word)
		if m == nil {
			continue
		}
		if !strings.Contains(makefile, "$("+m[1]+")") && !strings.Contains(makefile, "$(if $("+m[1]+")") {
			return "the variable " + m[1]
		}
		if m[1] != "SETTINGS" {
			continue
		}
		for setting := range strings.FieldsSeq(strings.Trim(strings.TrimPrefix(word, "SETTINGS="), "'")) {
			key, _, _ := strings.Cut(setting, "=")
			if !slices.Contains(strings.Fields(known.FindStringSubmatch(text(t, "infra/prerequisites.sh"))[1]), key) {
				return "the setting " + key
			}
		}
	}
	return ""
}

func TestCommands_NameWhatMakeHas(t *testing.T) {
	t.Parallel()
	n := 0
	for _, path := range markdown(t) {
		for _, command := range commandsOf(t, path) {
			if !strings.HasPrefix(command, "make ") {
				continue
			}
			n++
			if what := unknown(t, command); what != "" {
				t.Errorf("%s: `%s`: %s is not there", path, command, what)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d commands of make are there", n)
	}
	for command, what := range map[string]string{
		"make coffee": "its target", "make deploy TARGETS=dev": "the variable TARGETS",
		"make deploy SETTINGS='hold=yes mial=x'": "the setting mial", "make -s token SCOPES='read write'": "",
	} {
		if got := unknown(t, command); got != what {
			t.Errorf("%s: %q, want %q", command, got, what)
		}
	}
}

// What a page says to deploy or to compare with is enough, and nothing too much. The fleet's image wants Docker, which
// is not looked for.
func TestCommands_DeployWithWordsThatAreEnough(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"make", "node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not here", tool)
			}
			t.Skip(tool + " is not here")
		}
	}
	n := 0
	for _, path := range markdown(t) {
		for _, command := range commandsOf(t, path) {
			words := strings.TrimPrefix(strings.TrimPrefix(command, "make deploy"), "make diff")
			if words == command || !strings.Contains(words, "auth=") && !strings.Contains(words, "ISSUER=") {
				continue // it leaves out what belongs to the reader's deployment
			}
			n++
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "make prerequisites "+words+" STACKS='*-data'")
			cmd.Dir, cmd.Env = root, append(os.Environ(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
				"AWS_CONFIG_FILE="+os.DevNull)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s\n%s%v", path, command, said, err)
			}
		}
	}
	if n < 6 {
		t.Errorf("only %d deploys are there", n)
	}
}

// made by the cluster itself, whatever a manifest says.
var clusterKinds = []string{"pod", "hpa", "nodeclaim", "event"}

// A command of kubectl names a namespace, a deployment and kinds that the manifests have.
func TestCommands_NameWhatTheClusterHas(t *testing.T) {
	t.Parallel()
	manifests := text(t, "infra/manifest/manifest.go") + text(t, "infra/manifest/log_shipper.go")
	if !strings.Contains(manifests, `return "worker-" + p.Name`) {
		t.Error("a deployment is no longer called worker-POOL: this test looks for the wrong name")
	}
	wrong := func(command string) string {
		if m := space.FindStringSubmatch(command); m != nil &&
			!strings.Contains(manifests, "\nconst Namespace = \""+m[1]+"\"\n") &&
			!strings.Contains(manifests, "\nconst LogShipper = \""+m[1]+"\"\n") {
			return "the namespace " + m[1]
		}
		if m := worker.FindStringSubmatch(command); m != nil && !slices.Contains(contract.Pools, m[1]) {
			return "the pool " + m[1]
		}
		m := kind.FindStringSubmatch(command)
		if m == nil {
			return "a kind"
		}
		for of := range strings.SplitSeq(m[1], ",") {
			of = strings.TrimSuffix(of, "s")
			if !slices.Contains(clusterKinds, of) &&
				!strings.Contains(strings.ToLower(manifests), `"kind": "`+of+`"`) {
				return "the kind " + of
			}
		}
		return ""
	}
	n := 0
	for _, path := range markdown(t) {
		for _, command := range commandsOf(t, path) {
			if !strings.HasPrefix(command, "kubectl ") {
				continue
			}
			n++
			if what := wrong(command); what != "" {
				t.Errorf("%s: `%s`: there is not %s", path, command, what)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d commands of kubectl are there", n)
	}
	for command, what := range map[string]string{
		"kubectl -n other get pods": "the namespace other", "kubectl get hpas,cronjob": "the kind cronjob",
		"kubectl -n punctual scale deployment worker-wide": "the pool wide", "kubectl get nodepool,nodeclaim": "",
	} {
		if got := wrong(command); got != what {
			t.Errorf("%s: %q, want %q", command, got, what)
		}
	}
}
