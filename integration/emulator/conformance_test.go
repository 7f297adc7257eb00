package emulator_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"punctual/integration/emulator/environment"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/secret"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/conformance"
	"punctual/shared/contract"
	"punctual/shared/message"
	"punctual/shared/store"
)

// patience is the environment variable that lets slow exercises run: "4m" is enough for all.
const patience = "PUNCTUAL_TEST_PATIENCE"

// knobs describes MiniStack: it has no gaps that the adapters can notice.
func knobs(t *testing.T) conformance.Knobs {
	t.Helper()
	wait := os.Getenv(patience)
	if wait == "" {
		return conformance.Knobs{}
	}
	d, err := time.ParseDuration(wait)
	if err != nil {
		t.Fatalf("%s: %v", patience, err)
	}
	return conformance.Knobs{Patience: d}
}

// deployment returns an environment with a unique prefix, so that exercises never share a name.
func deployment() contract.Env {
	return contract.Env{Prefix: "c" + strings.ToLower(rand.Text()[:10])}
}

func TestTable_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	tables := table.New(environment.MiniStack(t).Config(), deployment().TableName)
	if err := tables.CreateAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	conformance.Table(t, func(*testing.T) store.Table { return tables }, knobs(t))
}

func TestQueue_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	conformance.Queue(t, queuesOf(environment.MiniStack(t).Config()), knobs(t))
}

// LocalStack is only used for redriving dead letters, so its other differences from AWS do not
// matter.
func TestQueue_ConformsOverLocalStack(t *testing.T) {
	t.Parallel()
	k := knobs(t)
	k.Gaps = map[string]string{
		"a message is received with its body, group and send time": "a standard queue of LocalStack has no groups",
		"large messages are sent in several requests":              "LocalStack has SQS's old limit of 256 KB",
	}
	conformance.Queue(t, queuesOf(environment.LocalStack(t).Config()), k)
}

// queuesOf returns a function that opens empty queues of an emulator.
func queuesOf(cfg aws.Config) func(*testing.T) conformance.Queues {
	return func(t *testing.T) conformance.Queues {
		queues := queue.New(cfg, deployment().QueueName)
		if err := queues.CreateAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		return queues
	}
}

func TestTimer_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg := environment.MiniStack(t).Config()
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
	}, knobs(t))
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
	blobs := blob.New(environment.MiniStack(t).Config(), deployment().Prefix)
	if err := blobs.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	conformance.Blob(t, func(*testing.T) store.Blobs { return blobs }, knobs(t))
}

func TestSecret_ConformsOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg := environment.MiniStack(t).Config()
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
	}, knobs(t))
}
