package deploy

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

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

// A restored table is swapped in while everything is held.
func TestHold_KeepsWhatIsAcceptedUntilItIsLifted(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "stream", "status", "sweeper")
	a := d.api(t, "pied-piper", everything...)
	if err := d.deployFrom(t.Context(), d.functions(), prefix+"-flow", "--exclusively", "-c", "hold=yes"); err != nil {
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
	for _, id := range ids {
		if v := a.Want(200, "GET", "/jobs/"+id, nil); v["status"] == "SUCCEEDED" {
			t.Errorf("%s has run", id)
		}
	}
	if err := d.deployFrom(t.Context(), d.functions(), prefix+"-flow", "--exclusively"); err != nil {
		t.Fatal(err)
	}
	d.work(t, "short")
	for _, id := range ids {
		a.Await(id, "SUCCEEDED", 5*time.Minute)
	}
}
