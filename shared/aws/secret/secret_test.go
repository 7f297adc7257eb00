package secret_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/secret"
	"punctual/shared/fault"
)

const arn = "arn:aws:secretsmanager:us-east-1:1:secret:punctual/punctual/acme/key-AbCdEf"

func TestSecrets_AskOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		value := "first"
		service := awstest.New(func(c awstest.Call) awstest.Answer {
			if c.Op != "GetSecretValue" || c.Field("SecretId") != arn {
				t.Errorf("call %s of %q", c.Op, c.Field("SecretId"))
			}
			return awstest.OK(`{"SecretString":"` + value + `"}`)
		})
		secrets := secret.New(service.Config())
		wants := func(want string, calls int) {
			t.Helper()
			got, err := secrets.Resolve(t.Context(), arn)
			if got != want || err != nil || service.Calls() != calls || secrets.Counts().SecretCalls != int64(calls) {
				t.Errorf("got %q, %v after %d calls; want %q after %d", got, err, service.Calls(), want, calls)
			}
		}
		wants("first", 1)
		value = "rotated"
		time.Sleep(secret.MaxAge - time.Second)
		wants("first", 1)
		time.Sleep(time.Second)
		wants("rotated", 2)
	})
}

func TestSecrets_SayWhyOneCannotBeReadAndRetryIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
	}{
		"absent":      {awstest.Fault(http.StatusBadRequest, "ResourceNotFoundException", ""), fault.NotFound},
		"not allowed": {awstest.Fault(http.StatusBadRequest, "AccessDeniedException", ""), fault.Forbidden},
		"deleted":     {awstest.Fault(http.StatusBadRequest, "InvalidRequestException", ""), fault.Invalid},
		"no text":     {awstest.OK(`{"SecretBinary":"AAEC"}`), fault.Invalid},
	} {
		service := awstest.New(func(awstest.Call) awstest.Answer { return c.answer })
		secrets := secret.New(service.Config())
		for n := range 2 {
			_, err := secrets.Resolve(t.Context(), arn)
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), arn) || service.Calls() != n+1 {
				t.Errorf("%s: %v after %d calls; want %s each time", name, err, service.Calls(), c.kind)
			}
		}
	}
}

//proof:of F35
func TestSecrets_ReadHostsFromTheTag(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]struct {
		hosts string
		bound bool
	}{
		`[]`:                                {"", false},
		`[{"Key":"team","Value":"x.test"}]`: {"", false},
		`[{"Key":"team","Value":"x.test"},{"Key":"punctual:hosts","Value":" api.example.com  .example.org "}]`: {
			"api.example.com|.example.org", true,
		},
		`[{"Key":"punctual:hosts","Value":""}]`: {"", true},
	} {
		service := awstest.New(func(c awstest.Call) awstest.Answer {
			if c.Op != "DescribeSecret" || c.Field("SecretId") != arn {
				t.Errorf("call %s of %q", c.Op, c.Field("SecretId"))
			}
			return awstest.OK(`{"Tags":` + tags + `}`)
		})
		secrets := secret.New(service.Config())
		for range 2 {
			hosts, bound, err := secrets.Hosts(t.Context(), arn)
			if strings.Join(hosts, "|") != want.hosts || bound != want.bound || err != nil || service.Calls() != 1 {
				t.Errorf("%s: %q, %v, %v after %d calls", tags, hosts, bound, err, service.Calls())
			}
		}
	}
	service := awstest.New(func(awstest.Call) awstest.Answer {
		return awstest.Fault(http.StatusBadRequest, "AccessDeniedException", "")
	})
	if _, _, err := secret.New(service.Config()).Hosts(t.Context(), arn); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("without the right to read tags: %v", err)
	}
}
