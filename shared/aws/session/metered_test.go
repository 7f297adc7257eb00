package session_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/session"
	"punctual/shared/telemetry"
)

//proof:of 167
func TestMetered_CountsThrottlesThatARetryMakesGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := awstest.New(func(c awstest.Call) awstest.Answer {
			switch c.N {
			case 1, 2:
				return awstest.Fault(http.StatusBadRequest, "ThrottlingException", "")
			case 3:
				return awstest.Lost()
			}
			return awstest.OK("")
		})
		var meter telemetry.Meter
		db := dynamodb.NewFromConfig(session.Within(session.Metered(service.Config(), &meter), 0, nil))
		if _, err := db.DescribeLimits(t.Context(), &dynamodb.DescribeLimitsInput{}); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := meter.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), `punctual_throttles_total{service="dynamodb"} 2`) {
			t.Errorf("the meter says\n%s\nwant two throttles of DynamoDB", text.String())
		}
	})
}
