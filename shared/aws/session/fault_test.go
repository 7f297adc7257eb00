package session_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/fault"
)

// read makes one call of a service that always gives the same answer.
func read(t *testing.T, a awstest.Answer, retryable func(error) bool) (tries int, err error) {
	t.Helper()
	service := awstest.New(func(awstest.Call) awstest.Answer { return a })
	db := dynamodb.NewFromConfig(session.Within(service.Config(), 0, retryable))
	_, err = db.DescribeLimits(t.Context(), &dynamodb.DescribeLimitsInput{})
	return service.Calls(), session.Fault(err, "reading %s", "limits")
}

func TestKind_NamesEachErrorOfAService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		want   fault.Kind
		tries  int
	}{
		{400, "ProvisionedThroughputExceededException", fault.Throttled, session.Tries},
		{400, "ThrottlingException", fault.Throttled, session.Tries},
		{400, "RequestLimitExceeded", fault.Throttled, session.Tries},
		{400, "LimitExceededException", fault.Throttled, session.Tries},
		{402, "ServiceQuotaExceededException", fault.Throttled, 1},
		{403, "AWS.SimpleQueueService.OverLimit", fault.Throttled, 1},
		{429, "SomethingNew", fault.Throttled, session.Tries},
		{400, "TransactionConflictException", fault.Conflict, 1},
		{409, "ConflictException", fault.Conflict, 1},
		{400, "TransactionInProgressException", fault.Conflict, session.Tries},
		{400, "AccessDeniedException", fault.Forbidden, 1},
		{403, "SomethingNew", fault.Forbidden, 1},
		{400, "UnrecognizedClientException", fault.Forbidden, 1},
		{400, "ExpiredTokenException", fault.Unavailable, 1},
		{400, "ResourceNotFoundException", fault.NotFound, 1},
		{400, "AWS.SimpleQueueService.NonExistentQueue", fault.NotFound, 1},
		{404, "NoSuchKey", fault.NotFound, 1},
		{400, "ValidationException", fault.Invalid, 1},
		{400, "SomethingNew", fault.Invalid, 1},
		{413, "SomethingNew", fault.TooLarge, 1},
		{400, "AWS.SimpleQueueService.BatchRequestTooLong", fault.TooLarge, 1},
		{500, "InternalServerError", fault.Unavailable, session.Tries},
		{503, "ServiceUnavailable", fault.Unavailable, session.Tries},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries, err := read(t, awstest.Fault(c.status, c.code, ""), nil)
			if got := fault.KindOf(err); got != c.want || tries != c.tries {
				t.Errorf("%d %s is %q after %d tries; want %q after %d", c.status, c.code, got, tries, c.want, c.tries)
			}
			if !strings.Contains(err.Error(), "reading limits") {
				t.Errorf("the error does not say what was being done: %v", err)
			}
		})
	}
}

func TestKind_CallsAnAnswerOfNoServiceUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, a := range map[string]awstest.Answer{
			"lost": awstest.Lost(),
			"a proxy's page": {Status: http.StatusBadGateway, Body: "<html>",
				Header: http.Header{"Content-Type": {"text/html"}}},
			"an answer halved": {Status: http.StatusOK, Body: `{"AccountMax`},
		} {
			tries, err := read(t, a, nil)
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%s: %v; want unavailable", name, err)
			}
			if name == "lost" && tries != session.Tries {
				t.Errorf("%s: %d tries; want %d", name, tries, session.Tries)
			}
		}
	})
}

func TestKind_CallsTheEndOfAContextUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	service := awstest.New(func(awstest.Call) awstest.Answer {
		cancel() // while the SDK waits for the next try
		return awstest.Fault(500, "InternalServerError", "")
	})
	db := dynamodb.NewFromConfig(session.Within(service.Config(), 0, nil))
	_, err := db.DescribeLimits(ctx, &dynamodb.DescribeLimitsInput{})
	if got := session.Kind(err); got != fault.Unavailable || service.Calls() != 1 {
		t.Errorf("a cancelled call is %q after %d tries: %v", got, service.Calls(), err)
	}
}

func TestKind_CallsWhatTheSDKRefusesInvalid(t *testing.T) {
	t.Parallel()
	service := awstest.New(func(awstest.Call) awstest.Answer { return awstest.OK("") })
	_, err := dynamodb.NewFromConfig(service.Config()).GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: aws.String("t")})
	if session.Kind(err) != fault.Invalid || service.Calls() != 0 {
		t.Errorf("a request without a key: %q after %d calls: %v", session.Kind(err), service.Calls(), err)
	}
}

func TestWithin_RetriesWhatTheAdapterNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conflict := func(err error) bool {
			var api smithy.APIError
			return errors.As(err, &api) && api.ErrorCode() == "TransactionConflictException"
		}
		if tries, _ := read(t, awstest.Fault(400, "TransactionConflictException", ""),
			conflict); tries != session.Tries {
			t.Errorf("%d tries of what is worth another; want %d", tries, session.Tries)
		}
	})
}

func TestFault_OfNoErrorIsNil(t *testing.T) {
	t.Parallel()
	if err := session.Fault(nil, "reading"); err != nil {
		t.Errorf("got %v", err)
	}
}
