package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
)

// depth is how many messages a queue holds, whatever their state.
func (d *deployment) depth(t *testing.T, logical string) string {
	t.Helper()
	client := sqs.NewFromConfig(d.aws.Config())
	queue, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(prefix + "-" + logical)})
	if err != nil {
		t.Fatal(err)
	}
	asked := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}
	out, err := client.GetQueueAttributes(t.Context(),
		&sqs.GetQueueAttributesInput{QueueUrl: queue.QueueUrl, AttributeNames: asked})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range asked {
		all = append(all, out.Attributes[string(a)])
	}
	return strings.Join(all, "+")
}

// The page of the restore, typed from its top: everything is held, the jobs table is restored and swapped in while jobs
// are accepted, and then it is let run.
func TestRestore_KeepsWhatIsAcceptedUntilItIsLifted(t *testing.T) {
	d := setup(t)
	if _, err := exec.LookPath("aws"); err != nil {
		environment.SkipOrFail(t, "the AWS CLI is not here")
	}
	d.explain(t, "api-write", "stream", "status", "sweeper")
	a := d.api(t, "pied-piper", everything...)
	if _, err := d.deploy(t.Context(), holds, d.functions()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second) // what was being read when it was held
	before := d.depth(t, "firing-short-normal")
	ids := make([]string, 5)
	for i := range ids { // later than what the API fires by itself, so by way of the stream
		ids[i] = a.Post(story.Object{"task": "echo", "payload": story.Object{"n": i}, "delay": "8s"})
	}
	time.Sleep(20 * time.Second)
	if now := d.depth(t, "firing-short-normal"); now != before {
		t.Errorf("the firing queue held %s messages, and holds %s: something fires", before, now)
	}
	swapped := strings.Fields(d.pasted(t, "Restore next to the table", "Swap it in"))
	d.stream = swapped[len(swapped)-1]
	if _, err := d.deploy(t.Context(), swapsIn, d.functions()); err != nil {
		t.Fatal(err)
	}
	d.words = append(d.words, "jobs_stream="+d.stream)
	d.work(t, "short")
	held := func() bool { return a.Want(200, "GET", "/ready", nil)["held"] != nil }
	await(t, "ready says that the table is held", held)
	for _, id := range ids {
		if v := a.Want(200, "GET", "/jobs/"+id, nil); v["status"] == "SUCCEEDED" {
			t.Errorf("%s has run", id)
		}
	}
	if overdue := d.pasted(t, "See what is overdue"); !strings.Contains(overdue, ids[0]) {
		t.Errorf("overdue are %s, and not %s", overdue, ids[0])
	}
	d.pasted(t, "Lift")
	for _, id := range ids {
		a.Await(id, "SUCCEEDED", 5*time.Minute)
	}
	await(t, "ready says nothing of the table any more", func() bool { return !held() })
}

// pasted runs the blocks of the page of the restore that are under headings, and returns what they print.
func (d *deployment) pasted(t *testing.T, headings ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, holds.page))
	if err != nil {
		t.Fatal(err)
	}
	commands, under := "", ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			under = strings.TrimSpace(heading)
		}
		if command, ok := strings.CutPrefix(line, "    "); ok && slices.Contains(headings, under) {
			commands += command
		}
	}
	if commands == "" {
		t.Fatalf("%s has no commands under %v", holds.page, headings)
	}
	said, err := d.shell(t.Context(), commands)
	if err != nil {
		t.Fatal(err)
	}
	return said
}
