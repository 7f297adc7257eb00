package api

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/contract"
	"punctual/shared/fault"
)

// principals are tags by ARN; an absent ARN is a fault.NotFound.
type principals map[string]map[string]string

func (p principals) Tags(_ context.Context, arn string) (map[string]string, error) {
	if arn == "arn:away" {
		return nil, fault.New(fault.Unavailable, nil, "IAM is away")
	}
	tags, ok := p[arn]
	if !ok {
		return nil, fault.New(fault.NotFound, nil, "nobody")
	}
	return tags, nil
}

func TestSigned_TakesTheIdentityFromTheSignersTags(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:sts::1:assumed-role/billing/s"
	known := principals{
		role:       {"punctual:tenant": "acme", "punctual:scopes": "admin read,write  read"},
		"arn:none": {},
	}
	var seen map[string]any
	next := func(_ context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		seen = ev.RequestContext.Authorizer
		return events.APIGatewayProxyResponse{StatusCode: 200}, nil
	}
	event := func(arn, account string) events.APIGatewayProxyRequest {
		return events.APIGatewayProxyRequest{RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: "1", Authorizer: map[string]any{"tenant": "made-up", "scopes": "punctual:admin"},
			Identity: events.APIGatewayRequestIdentity{UserArn: arn, AccountID: account},
		}}
	}
	by := Signed(contract.AuthIAM, known, next)
	for name, c := range map[string]struct {
		arn, account, tenant, scopes string
	}{
		"a role with tags":                     {role, "1", "acme", "punctual:read punctual:admin"},
		"a role without":                       {"arn:none", "1", "", ""},
		"a role that is gone":                  {"arn:gone", "1", "", ""},
		"a role of that name, another account": {role, "2", "", ""},
		"nobody":                               {"", "", "", ""},
	} {
		seen = nil
		if _, err := by(t.Context(), event(c.arn, c.account)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tenant, _ := seen["tenant"].(string)
		scopes, _ := seen["scopes"].(string)
		if tenant != c.tenant || scopes != c.scopes {
			t.Errorf("%s is %q with %q; want %q with %q", name, tenant, scopes, c.tenant, c.scopes)
		}
	}
	if _, err := by(t.Context(), event("arn:away", "1")); err == nil {
		t.Error("without IAM somebody was let in")
	}
	if _, err := Signed("token", known, next)(t.Context(), event(role, "1")); err != nil ||
		seen["tenant"] != "made-up" {
		t.Errorf("where tokens say who asks, it is %v, %v", seen, err)
	}
}
