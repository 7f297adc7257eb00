package principal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/principal"
	"punctual/shared/fault"
)

// account is an IAM with one role and one user.
func account(c awstest.Call) awstest.Answer {
	asked, _ := url.ParseQuery(c.Body)
	action := asked.Get("Action")
	if asked.Get("RoleName") != "billing" && asked.Get("UserName") != "ada" {
		return awstest.Answer{Status: http.StatusNotFound, Body: "<ErrorResponse><Error><Code>NoSuchEntity</Code>" +
			"<Message>said by the test</Message></Error></ErrorResponse>"}
	}
	return awstest.OK("<" + action + "Response><" + action + "Result><Tags><member><Key>punctual:tenant</Key><Value>" +
		asked.Get("RoleName") + asked.Get("UserName") + "</Value></member></Tags></" + action + "Result></" + action +
		"Response>")
}

func TestPrincipals_ReadTheTagsOfWhoSigned(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{
		"arn:aws:sts::123456789012:assumed-role/billing/session-1": "billing",
		"arn:aws:iam::123456789012:user/people/ada":                "ada",
		"arn:aws:iam::123456789012:user/ada":                       "ada",
		"arn:aws:iam::123456789012:root":                           "",
		"arn:aws:sts::123456789012:federated-user/billing":         "",
		"arn:aws:sts::123456789012:assumed-role/billing":           "",
		"arn:aws:iam::123456789012:role/billing":                   "",
		"billing":                                                  "",
		"":                                                         "",
	} {
		service := awstest.New(account)
		p := principal.New(service.Config())
		for range 2 {
			tags, err := p.Tags(t.Context(), arn)
			if err != nil || tags["punctual:tenant"] != want {
				t.Errorf("%q has %v, %v; want %q", arn, tags, err, want)
			}
		}
		if calls := service.Calls(); calls > 1 {
			t.Errorf("%q: IAM was asked %d times", arn, calls)
		}
	}
}

func TestPrincipals_SayWhoIsNotThere(t *testing.T) {
	t.Parallel()
	p := principal.New(awstest.New(account).Config())
	_, err := p.Tags(t.Context(), "arn:aws:sts::123456789012:assumed-role/gone/x")
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "the role gone") {
		t.Errorf("got %v", err)
	}
}
