package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// asked is a row of the table of questions: the question, the command that answers it, and the view of the console.
var asked = regexp.MustCompile("(?m)^\\| ([^|]+\\?) \\| `([^`]+)` \\| ([^|]*) \\|$")

// before makes what the questions are about, and names it.
const before = `
printf 'name: morning\ncalendar: {cron: "0 9 * * *"}\njob: {task: echo}\n' | punctual schedule apply -f -
punctual schedule run morning
punctual run echo --tag customer=42 --wait
JOB=$(punctual run greet -o name)
curl -s "$PUNCTUAL_URL/v1/jobs/$JOB?wait=20s"
for n in $(seq 100); do
	GROUP=$(punctual dead groups -o json | grep -o '"group": *"[0-9a-f]*' | grep -o '[0-9a-f]*$') && break
	sleep 0.1
done
SCHEDULE=morning
punctual pause task:greet --reason "the target is down"
`

// Each question of the page is answered by one command, on a laptop to which something has happened, and by a view that
// the console has.
func TestOperating_AnswersEachQuestionByOneCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		environment.SkipOrFail(t, "a server is built")
	}
	questions := asked.FindAllStringSubmatch(text(t, "shared/docs/operating.md"), -1)
	if len(questions) < 15 {
		t.Fatalf("%d questions are in the table", len(questions))
	}
	bin := t.TempDir()
	build(t, root, filepath.Join(bin, "local"), "./workers/cmd/local")
	build(t, root, filepath.Join(bin, "punctual"), "./workers/cmd/punctual")
	at := serve(t, filepath.Join(bin, "local"))
	console := text(t, "functions/console/static/app.js")
	script := before
	for _, q := range questions {
		script += "echo; echo '" + mark + "'; " + q[2] + "\n"
		view, _, _ := strings.Cut(q[3], ",")
		if !strings.Contains(console, "'"+strings.TrimSpace(view)+"'") {
			t.Errorf("%s: the console has no view %q", q[1], view)
		}
	}
	out, err := shell(t, t.TempDir(), script, "PUNCTUAL_URL=http://"+at, "PUNCTUAL_TOKEN=",
		"PUNCTUAL_CONFIG="+t.TempDir()+"/none.yaml", "PATH="+bin+":/usr/local/bin:/usr/bin:/bin")
	answers := strings.Split(out, mark)
	if err != nil || len(answers) != len(questions)+1 {
		t.Fatalf("%v after %d of %d answers\n%s", err, len(answers)-1, len(questions), out)
	}
	for n, q := range questions {
		if strings.TrimSpace(answers[n+1]) == "" {
			t.Errorf("%s: %s answers nothing", q[1], q[2])
		}
	}
}
