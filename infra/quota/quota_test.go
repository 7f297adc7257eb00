package quota

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"punctual/infra/target"
)

// fake is an account: quotas by their code or name, and what others hold. What is not there cannot be read.
type fake struct {
	allowed map[string]float64
	held    map[kind]int
}

func (f fake) Value(_ context.Context, _, code string) (float64, error) {
	v, ok := f.allowed[code]
	if !ok {
		return 0, errors.New("you may not ask")
	}
	return v, nil
}

func (f fake) Code(_ context.Context, service string, name *regexp.Regexp) (string, error) {
	for quota := range f.allowed {
		if name.MatchString(quota) {
			return quota, nil
		}
	}
	return "", errors.New("you may not list " + service)
}

func (f fake) Zones(context.Context, string) ([]string, error) { return nil, nil }

func (f fake) Used(_ context.Context, k kind, but string) (int, error) {
	if !strings.HasSuffix(but, "-fleet") {
		return 0, errors.New("but for which stack?")
	}
	return f.held[k], nil
}

func settings(t *testing.T, name string) target.Settings {
	t.Helper()
	s, err := target.Load(func(key string) string {
		return map[string]string{"target": name, "issuer": "https://id.example.com", "audience": "punctual"}[key]
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Groups have a rate of their own, with a name that begins alike.
func newAccount() fake {
	return fake{map[string]float64{concurrency: 10, "L-1216C47A": 5, "L-0263D0A3": 5, "L-F678F1CE": 5,
		"L-1194D53C": 100, "CreateScheduleGroup request rate": 1, "CreateSchedule request rate": 250,
		"Invocations throttle limit": 500}, map[kind]int{networks: 1}} // one network comes with each account
}

func grown() fake {
	a := newAccount()
	a.allowed[concurrency], a.allowed["L-1216C47A"] = 1000, 256
	return a
}

func TestRead_SaysWhatToRequest(t *testing.T) {
	t.Parallel()
	r := Read(t.Context(), settings(t, "prod"), newAccount())
	said := strings.Join(r.Says, "\n")
	for _, want := range []string{
		"in us-east-1 the account is allowed", "10 invocations of functions at once and prod wants 700",
		"--service-code lambda --quota-code L-B99A9384 --desired-value 1000", "5 cores",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if len(r.Says) != 1 || r.Concurrency != 10 {
		t.Errorf("it knows of %d invocations, and says\n%s", r.Concurrency, said)
	}
}

func TestRead_SaysNothingIfAllQuotasAreLargeEnough(t *testing.T) {
	t.Parallel()
	if r := Read(t.Context(), settings(t, "prod"), grown()); len(r.Says) != 0 || r.Concurrency != 1000 {
		t.Errorf("got %+v", r)
	}
	if r := Read(t.Context(), settings(t, "dev"), newAccount()); len(r.Says) != 0 {
		t.Errorf("dev wants more than a new account has: %v", r.Says)
	}
}

func TestRead_AssumesLargeQuotasWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := Read(t.Context(), settings(t, "prod"), fake{})
	if r.Concurrency != 0 || len(r.Says) != 1 || !strings.Contains(r.Says[0], "you may not ask") {
		t.Errorf("got %+v", r)
	}
}

func TestRead_CountsResourcesOfOtherStacks(t *testing.T) {
	t.Parallel()
	a := grown()
	a.held = map[kind]int{addresses: 3, networks: 5, clusters: 100}
	said := strings.Join(Read(t.Context(), settings(t, "prod"), a).Says, "\n")
	for _, want := range []string{
		"5 addresses for NAT gateways, in all networks together, others hold 3, and prod wants 3",
		"5 networks, others hold 5, and prod wants 1", "100 clusters, others hold 100, and prod wants 1",
		"--service-code ec2 --quota-code L-0263D0A3 --desired-value 6",
		"--service-code eks --quota-code L-1194D53C --desired-value 101",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	a.held[addresses] = 2
	if said := strings.Join(Read(t.Context(), settings(t, "prod"), a).Says, "\n"); strings.Contains(said, "addresses") {
		t.Errorf("three of five are free:\n%s", said)
	}
}

func TestRead_KnowsSchedulersRates(t *testing.T) {
	t.Parallel()
	a := grown()
	a.allowed["CreateSchedule request rate"], a.allowed["Invocations throttle limit"] = 100, 32
	said := strings.Join(Read(t.Context(), settings(t, "prod"), a).Says, "\n")
	for _, want := range []string{"100 timers made a second and prod wants 250",
		"32 timers fired a second and prod wants 64",
		"--service-code scheduler --quota-code CreateSchedule request rate --desired-value 1000"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// AWS's answers, as documented.
const (
	twoAddresses = `<DescribeAddressesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><addressesSet>
		<item><publicIp>203.0.113.1</publicIp><tagSet><item><key>aws:cloudformation:stack-name</key>
		<value>punctual-dev-fleet</value></item></tagSet></item>
		<item><publicIp>203.0.113.2</publicIp></item></addressesSet></DescribeAddressesResponse>`
	twoNetworks = `<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><vpcSet>
		<item><vpcId>vpc-1</vpcId><cidrBlockAssociationSet><item><cidrBlock>10.0.0.0/16</cidrBlock></item>
		</cidrBlockAssociationSet></item><item><vpcId>vpc-2</vpcId></item></vpcSet></DescribeVpcsResponse>`
	threeClusters = `{"clusters":["others","punctual-dev","more"]}`
)

func TestAccount_CountsAllButItsOwnResources(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer := threeClusters
		switch r.FormValue("Action") {
		case "DescribeAddresses":
			answer = twoAddresses
		case "DescribeVpcs":
			answer = twoNetworks
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	a := account{cfg: aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")}}
	for k, want := range map[kind]int{addresses: 1, networks: 2, clusters: 2} {
		if got, err := a.Used(t.Context(), k, "punctual-dev-fleet"); err != nil || got != want {
			t.Errorf("others hold %d %s, %v; want %d", got, k, err, want)
		}
	}
	a.cfg.Credentials = credentials.NewStaticCredentialsProvider("another", "secret", "")
	if _, err := a.Used(t.Context(), networks, "punctual-dev-fleet"); err == nil ||
		!strings.Contains(err.Error(), "403") {
		t.Errorf("a refusal is %v", err)
	}
}
