package session

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestRecord_WritesEachCallOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	t.Setenv(recordTo, name)
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "punctual-status")
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1") // no server: a refused or failed call is a call
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	cfg, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	ended, end := context.WithCancel(t.Context())
	end()
	db, queues := dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "secret"}}
	keys := types.KeysAndAttributes{Keys: []map[string]types.AttributeValue{key}}
	for range 2 {
		_, _ = db.GetItem(ended, &dynamodb.GetItemInput{TableName: aws.String("jobs"), Key: key})
		_, _ = db.Query(ended, &dynamodb.QueryInput{TableName: aws.String("jobs"), IndexName: aws.String("due")})
		_, _ = db.BatchGetItem(ended,
			&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"tasks": keys, "jobs": keys}})
		_, _ = db.TransactWriteItems(ended, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("jobs"), Item: key}},
			{ConditionCheck: &types.ConditionCheck{TableName: aws.String("claims"), Key: key,
				ConditionExpression: aws.String("a")}},
		}})
		_, _ = queues.SendMessageBatch(ended, &sqs.SendMessageBatchInput{QueueUrl: aws.String("http://q/1/report"),
			Entries: []sqstypes.SendMessageBatchRequestEntry{
				{Id: aws.String("1"), MessageBody: aws.String("secret")},
			}})
		_, _ = secretsmanager.NewFromConfig(cfg).GetSecretValue(ended,
			&secretsmanager.GetSecretValueInput{SecretId: aws.String("punctual/x")})
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ReplaceAll(string(text), "secretsmanager:GetSecretValue", ""), "secret") {
		t.Errorf("what is in an item is recorded: %s", text)
	}
	got := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	want := []string{
		"dynamodb:GetItem\tjobs", "dynamodb:Query\tjobs/index/due", "dynamodb:BatchGetItem\tjobs",
		"dynamodb:BatchGetItem\ttasks",
		"dynamodb:TransactWriteItems.Put\tjobs", "dynamodb:TransactWriteItems.ConditionCheck\tclaims",
		"sqs:SendMessageBatch\thttp://q/1/report", "secretsmanager:GetSecretValue\tpunctual/x",
	}
	for i := range want {
		want[i] = "punctual-status\t" + want[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRecord_MarksADeniedCall(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"__type":"AccessDeniedException","message":"no"}`))
	}))
	defer denies.Close()
	t.Setenv(recordTo, name)
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
	t.Setenv("AWS_ENDPOINT_URL", denies.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	cfg, err := Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = dynamodb.NewFromConfig(cfg).Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("jobs")})
	const want = "f\tdynamodb:Query\tjobs\nf\tdynamodb:Query\tjobs\tdenied\n"
	if got, err := os.ReadFile(name); string(got) != want {
		t.Errorf("recorded %q, %v; want %q", got, err, want)
	}
}

func TestRecord_FailsTheStartWhenItsFileCannotBeWritten(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv(recordTo, filepath.Join(t.TempDir(), "no", "calls"))
	if _, err := Load(t.Context()); err == nil || !strings.Contains(err.Error(), recordTo) {
		t.Errorf("it gives %v; want an error that names %s", err, recordTo)
	}
}

func TestRecord_IsOffByDefault(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv(recordTo, "")
	cfg, err := Load(t.Context())
	if err != nil || len(cfg.APIOptions) != 0 {
		t.Errorf("%d options are added, %v", len(cfg.APIOptions), err)
	}
}
