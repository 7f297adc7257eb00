package queue_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/queue"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
)

// entry is one of a batch, sent or to be deleted.
type entry struct {
	ID      string `json:"Id"`
	Body    string `json:"MessageBody"`
	Receipt string `json:"ReceiptHandle"`
	Delay   int    `json:"DelaySeconds"`
	Group   string `json:"MessageGroupId"`
}

// bench is queues whose requests a test sees and answers.
type bench struct {
	*queue.Queues
	ops     []string
	batches [][]entry
	bodies  []string // of all requests but the search for a URL
}

// failure is what SQS says of one entry that it did not take.
func failure(code string, senderFault bool) map[string]any {
	return map[string]any{"Code": code, "SenderFault": senderFault}
}

// setup answers batches by verdict, which names what becomes of an entry (nil: taken) in the
// how many-th batch, from 1; or with answer, if there is one.
func setup(verdict func(batch int, e entry) map[string]any, answer func(op string) (awstest.Answer, bool)) *bench {
	b := &bench{}
	service := awstest.New(func(c awstest.Call) awstest.Answer {
		b.ops = append(b.ops, c.Op)
		if answer != nil {
			if a, given := answer(c.Op); given {
				return a
			}
		}
		if c.Op == "GetQueueUrl" {
			return awstest.OK(`{"QueueUrl":"https://sqs/1/` + c.Field("QueueName") + `"}`)
		}
		b.bodies = append(b.bodies, c.Body)
		var in struct{ Entries []entry }
		if err := json.Unmarshal([]byte(c.Body), &in); err != nil || in.Entries == nil {
			return awstest.OK(`{"QueueUrl":"https://sqs/1/made"}`)
		}
		b.batches = append(b.batches, in.Entries)
		ok, failed := []map[string]any{}, []map[string]any{}
		for _, e := range in.Entries {
			var v map[string]any
			if verdict != nil {
				v = verdict(len(b.batches), e)
			}
			switch {
			case v == nil:
				ok = append(ok, map[string]any{
					"Id": e.ID, "MessageId": "m-" + e.ID, "MD5OfMessageBody": md5Hex(e.Body),
				})
			case len(v) > 0:
				v["Id"] = e.ID
				failed = append(failed, v)
			}
		}
		out, err := json.Marshal(map[string]any{"Successful": ok, "Failed": failed})
		if err != nil {
			return awstest.Fault(http.StatusInternalServerError, "InternalError", "")
		}
		return awstest.OK(string(out))
	})
	b.Queues = queue.New(service.Config(), func(logical string) string { return "test-" + logical })
	return b
}

func TestQueues_AskForAURLOnce(t *testing.T) {
	t.Parallel()
	b := setup(nil, nil)
	for range 3 {
		if err := b.SetVisibility(t.Context(), contract.ReportQueue, "r", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"GetQueueUrl", "ChangeMessageVisibility", "ChangeMessageVisibility",
		"ChangeMessageVisibility"}; !slices.Equal(b.ops, want) {
		t.Errorf("calls were %v; want %v", b.ops, want)
	}
	want := `{"QueueUrl":"https://sqs/1/test-report","ReceiptHandle":"r","VisibilityTimeout":60}`
	if !sameJSON(b.bodies[0], want) {
		t.Errorf("the request is %s; want %s", b.bodies[0], want)
	}
	if got := b.Counts(); got.QueueCalls != 4 || got.QueueUnits != 4 {
		t.Errorf("counted %+v; want 4 calls, 4 units", got)
	}
	// At once must be said: a timeout left out is refused.
	if err := b.SetVisibility(t.Context(), contract.ReportQueue, "r", 0); err != nil ||
		!sameJSON(b.bodies[3], `{"QueueUrl":"https://sqs/1/test-report","ReceiptHandle":"r","VisibilityTimeout":0}`) {
		t.Errorf("giving back at once sends %s, %v", b.bodies[3], err)
	}
}

func TestQueues_RetryTheLookUpOfAnAbsentQueue(t *testing.T) {
	t.Parallel()
	b := setup(nil, func(op string) (awstest.Answer, bool) {
		return awstest.Fault(http.StatusBadRequest, "QueueDoesNotExist", ""), op == "GetQueueUrl"
	})
	for range 2 {
		if _, err := b.Depth(t.Context(), "nowhere"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%v; want not found", err)
		}
	}
	if len(b.ops) != 2 {
		t.Errorf("calls were %v; want two searches", b.ops)
	}
}

func TestReceive_ReturnsAllThatSQSSays(t *testing.T) {
	t.Parallel()
	b := setup(nil, func(op string) (awstest.Answer, bool) {
		return awstest.OK(`{"Messages":[
			{"MessageId":"m-1","ReceiptHandle":"r-1","Body":"one","MD5OfBody":"` + md5Hex("one") + `","Attributes":{
				"ApproximateReceiveCount":"3","SentTimestamp":"1795000000123","MessageGroupId":"acme",
					"DeadLetterQueueSourceArn":"arn:aws:sqs:us-east-1:1:test-redrive"}},
			{"MessageId":"m-2","ReceiptHandle":"r-2","Body":"two","MD5OfBody":"` + md5Hex("two") + `","Attributes":{
				"ApproximateReceiveCount":"1","SentTimestamp":"1795000000123",
					"DeadLetterQueueSourceArn":"arn:aws:sqs:us-east-1:1:somebody-elses"}}]}`), op == "ReceiveMessage"
	})
	got, err := b.Receive(t.Context(), contract.DeadLetters, 10, 20*time.Second, 90*time.Second)
	sent := time.UnixMilli(1795000000123).UTC()
	want := []message.Delivery{
		{ID: "m-1", Receipt: "r-1", Body: "one", Group: "acme", Receives: 3, SentAt: sent,
			Source: contract.RedriveQueue},
		{ID: "m-2", Receipt: "r-2", Body: "two", Receives: 1, SentAt: sent, Source: "somebody-elses"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("received %+v, %v; want %+v", got, err, want)
	}
}

func TestReceive_PassesItsLimitsOn(t *testing.T) {
	t.Parallel()
	const attributes = `"MessageSystemAttributeNames":["ApproximateReceiveCount","SentTimestamp","MessageGroupId",` +
		`"DeadLetterQueueSourceArn"],"QueueUrl":"https://sqs/1/test-report"`
	for want, ask := range map[string]func(*bench) error{
		`{"MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":31,` + attributes +
			`}`: func(b *bench) error {
			_, err := b.Receive(t.Context(), contract.ReportQueue, 10, 20*time.Second, 30*time.Second+time.Millisecond)
			return err
		},
		`{"MaxNumberOfMessages":1,` + attributes + `}`: func(b *bench) error {
			_, err := b.Receive(t.Context(), contract.ReportQueue, 1, 0, 0)
			return err
		},
	} {
		b := setup(nil, nil)
		if err := ask(b); err != nil || !sameJSON(b.bodies[0], want) {
			t.Errorf("the request is %s, %v; want %s", b.bodies[0], err, want)
		}
	}
}

func TestReceive_RefusesWhatIsOutsideSQSsLimits(t *testing.T) {
	t.Parallel()
	b := setup(nil, nil)
	for name, receive := range map[string]func() error{
		"eleven": func() error { _, err := b.Receive(t.Context(), "q", 11, 0, 0); return err },
		"none":   func() error { _, err := b.Receive(t.Context(), "q", 0, 0, 0); return err },
		"a long wait": func() error {
			_, err := b.Receive(t.Context(), "q", 1, 21*time.Second, 0)
			return err
		},
		"a long visibility": func() error { return b.SetVisibility(t.Context(), "q", "r", 12*time.Hour+1) },
		"a negative one":    func() error { return b.SetVisibility(t.Context(), "q", "r", -1) },
	} {
		if err := receive(); fault.KindOf(err) != fault.Invalid || len(b.ops) != 0 {
			t.Errorf("%s: %v after %v; want invalid, unsent", name, err, b.ops)
		}
	}
}

func TestDepth_IsWhatSQSCounts(t *testing.T) {
	t.Parallel()
	b := setup(nil, func(op string) (awstest.Answer, bool) {
		return awstest.OK(`{"Attributes":{"ApproximateNumberOfMessages":"7",` +
			`"ApproximateNumberOfMessagesNotVisible":"2","ApproximateNumberOfMessagesDelayed":"5"}}`,
		), op == "GetQueueAttributes"
	})
	if got, err := b.Depth(t.Context(), contract.ReportQueue); err != nil ||
		got != (message.Depth{Visible: 7, InFlight: 2, Delayed: 5}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestQueues_NameTheKindOfAFault(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]fault.Kind{
		"AccessDeniedException": fault.Forbidden, "ReceiptHandleIsInvalid": fault.Invalid,
		"MessageNotInflight":                      fault.Invalid,
		"AWS.SimpleQueueService.NonExistentQueue": fault.NotFound,
	} {
		b := setup(nil, func(op string) (awstest.Answer, bool) {
			return awstest.Fault(http.StatusBadRequest, code, ""), op == "ChangeMessageVisibility"
		})
		if err := b.SetVisibility(t.Context(), contract.ReportQueue, "r", 0); fault.KindOf(err) != want {
			t.Errorf("%s: %v; want %s", code, err, want)
		}
	}
}

func TestCreateAll_MakesTheQueuesOfTheContract(t *testing.T) {
	t.Parallel()
	b := setup(nil, func(op string) (awstest.Answer, bool) {
		return awstest.OK(`{"Attributes":{"QueueArn":"arn:dlq"}}`), op == "GetQueueAttributes"
	})
	if err := b.CreateAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for _, body := range b.bodies {
		var in struct {
			QueueName  string
			Attributes map[string]string
		}
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		made[in.QueueName] = fmt.Sprint(in.Attributes["VisibilityTimeout"], " ",
			in.Attributes["MessageRetentionPeriod"], " ", in.Attributes["RedrivePolicy"])
	}
	if len(made) != len(contract.Queues()) {
		t.Errorf("%d queues were made; want %d", len(made), len(contract.Queues()))
	}
	for name, want := range map[string]string{
		"test-dead-letters":        "60 1209600 ",
		"test-redrive":             `60 345600 {"deadLetterTargetArn":"arn:dlq","maxReceiveCount":"3"}`,
		"test-firing-short-normal": `30 345600 {"deadLetterTargetArn":"arn:dlq","maxReceiveCount":"50"}`,
	} {
		if made[name] != want {
			t.Errorf("%s is made with %q; want %q", name, made[name], want)
		}
	}
}
