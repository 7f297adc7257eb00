package environment

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestEmulator_IdentifiesCallersByTheirKeys(t *testing.T) {
	t.Parallel()
	installed(t)
	e, err := Start(t.Context(), miniStack, Options{Checked: true, Output: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	if _, err := sqs.NewFromConfig(e.Config()).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Errorf("the owner may not: %v", err)
	}
	stranger := e.Config()
	stranger.Credentials = credentials.NewStaticCredentialsProvider("AKIDSTRANGER", "secret", "")
	stranger.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if _, err := sqs.NewFromConfig(stranger).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
		t.Error("a stranger may list queues")
	}
	if !strings.HasPrefix(e.URL, "https://") {
		t.Errorf("it is at %s; policies that ask for TLS would refuse everybody", e.URL)
	}
	other := &http.Client{Timeout: 5 * time.Second}
	if _, err := other.Get(e.URL + miniStack.ready); err == nil {
		t.Error("who does not know its authority trusts it")
	}
}
