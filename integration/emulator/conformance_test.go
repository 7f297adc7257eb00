package emulator_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go/middleware"

	"punctual/integration/emulator/environment"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/secret"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/conformance"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/store"
)

// patience is the environment variable that lets slow exercises run: "4m" is enough for all.
const patience = "PUNCTUAL_TEST_PATIENCE"

// counted returns a configuration of an emulator's clients, and knobs that count what they resend.
func counted(t *testing.T, cfg aws.Config) (aws.Config, conformance.Knobs) {
	t.Helper()
	resent := &atomic.Int64{}
	k := conformance.Knobs{Resent: resent.Load}
	if wait := os.Getenv(patience); wait != "" {
		d, err := time.ParseDuration(wait)
		if err != nil {
			t.Fatalf("%s: %v", patience, err)
		}
		k.Patience = d
	}
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CountResent", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			if tries, ok := retry.GetAttemptResults(metadata); ok && len(tries.Results) > 1 {
				resent.Add(1)
			}
			return out, metadata, err
		}), middleware.After)
	})
	return cfg, k
}

// An update that counts, whose answer is lost, is carried out twice, and the knobs say so.
func TestCounted_CountsWhatIsResent(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	cfg, k := counted(t, aws.Config{Region: environment.Region, BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	tables := table.New(cfg, deployment().TableName)
	for n := range 2 {
		if _, err := tables.Get(t.Context(), item.Ref{Table: contract.Claims, PK: "x"}); err != nil {
			t.Fatal(err)
		}
		if got := k.Resent(); got != 1 {
			t.Errorf("after %d calls, the first of which was sent twice, %d are counted, want 1", n+1, got)
		}
	}
}

// deployment returns an environment with a unique prefix, so that exercises never share a name.
func deployment() contract.Env {
	return contract.Env{Prefix: "c" + strings.ToLower(rand.Text()[:10])}
}

//proof:of 68 82
func TestTable_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	tables := table.New(cfg, deployment().TableName)
	if err := tables.CreateAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	conformance.Table(t, func(*testing.T) store.Table { return tables }, k)
	conformance.Scan(t, func(*testing.T) conformance.ScanBench { return tables }, k)
}

func TestSearchTable_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	tables := table.New(cfg, deployment().TableName)
	if err := tables.CreateAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	conformance.Search(t, func(*testing.T) conformance.SearchIndex { return store.NewSearchTable(nil, tables) }, k)
}

func TestQueue_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	conformance.Queue(t, queuesOf(cfg), k)
}

// LocalStack is only used for redriving dead letters, so its other differences from AWS do not
// matter.
func TestQueue_ConformsOverLocalStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.LocalStack(t).Config())
	k.Gaps = map[string]string{
		"a message is received with its body, group and send time": "a standard queue of LocalStack has no groups",
		"large messages are sent in several requests":              "LocalStack has SQS's old limit of 256 KB",
	}
	conformance.Queue(t, queuesOf(cfg), k)
}

// queuesOf returns a function that opens empty queues of an emulator.
func queuesOf(cfg aws.Config) func(*testing.T) message.Queues {
	return func(t *testing.T) message.Queues {
		queues := queue.New(cfg, deployment().QueueName)
		if err := queues.CreateAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		return queues
	}
}

func TestTimer_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	conformance.Timer(t, func(t *testing.T) conformance.TimerBench {
		env := deployment()
		queues := queue.New(cfg, env.QueueName)
		if err := queues.CreateAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		target, err := queues.ARN(t.Context(), contract.DispatchQueue)
		if err != nil {
			t.Fatal(err)
		}
		dead, err := queues.ARN(t.Context(), contract.FiringDead)
		if err != nil {
			t.Fatal(err)
		}
		timers := timer.New(cfg, timer.Settings{
			Group: env.Prefix, Target: target, DeadLetter: dead, Role: "arn:aws:iam::000000000000:role/timers",
		})
		if err := timers.CreateGroup(t.Context()); err != nil {
			t.Fatal(err)
		}
		return conformance.TimerBench{Timers: timers, Queues: queues, Armed: armed(cfg, env.Prefix)}
	}, k)
}

// armed returns how to read a timer as AWS stores it, not as the adapter wrote it.
func armed(cfg aws.Config, group string) func(context.Context, string) (message.Timer, bool, error) {
	entries := scheduler.NewFromConfig(cfg)
	return func(ctx context.Context, name string) (message.Timer, bool, error) {
		out, err := entries.GetSchedule(ctx, &scheduler.GetScheduleInput{GroupName: aws.String(group),
			Name: aws.String(name)})
		var absent *types.ResourceNotFoundException
		if errors.As(err, &absent) {
			return message.Timer{}, false, nil
		}
		if err != nil {
			return message.Timer{}, false, err
		}
		at, err := time.Parse("at(2006-01-02T15:04:05)", aws.ToString(out.ScheduleExpression))
		if err != nil {
			return message.Timer{}, false, err
		}
		if out.ActionAfterCompletion != types.ActionAfterCompletionDelete ||
			out.FlexibleTimeWindow.Mode != types.FlexibleTimeWindowModeOff {
			return message.Timer{}, false, errors.New("the entry would stay after it fired, " +
				"or fire anywhere in a window")
		}
		return message.Timer{
			Name: aws.ToString(out.Name), At: at, Body: aws.ToString(out.Target.Input),
			MaxAge: time.Duration(aws.ToInt32(out.Target.RetryPolicy.MaximumEventAgeInSeconds)) * time.Second,
		}, true, nil
	}
}

func TestBlob_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	blobs := blob.New(cfg, deployment().Prefix)
	if err := blobs.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	conformance.Blob(t, func(*testing.T) store.Blobs { return blobs }, k)
}

func TestSecret_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg, k := counted(t, environment.MiniStack(t).Config())
	create := func(tags ...secrettypes.Tag) (*secretsmanager.CreateSecretOutput, error) {
		return secretsmanager.NewFromConfig(cfg).CreateSecret(context.Background(), &secretsmanager.CreateSecretInput{
			Name: aws.String("punctual/punctual/acme/" + rand.Text()), SecretString: aws.String("s3cret"), Tags: tags,
		})
	}
	made := sync.OnceValues(func() (*secretsmanager.CreateSecretOutput, error) {
		return create(secrettypes.Tag{Key: aws.String(secret.HostsTag), Value: aws.String("a.test .b.test")})
	})
	free := sync.OnceValues(func() (*secretsmanager.CreateSecretOutput, error) { return create() })
	conformance.Secret(t, func(t *testing.T) conformance.SecretBench {
		out, err := made()
		if err != nil {
			t.Fatal(err)
		}
		other, err := free()
		if err != nil {
			t.Fatal(err)
		}
		arn := aws.ToString(out.ARN)
		return conformance.SecretBench{Secrets: secret.New(cfg), ARN: arn, Value: "s3cret",
			Free: aws.ToString(other.ARN), Absent: arn[:len(arn)-7] + "x-AbCdEf"}
	}, k)
}
