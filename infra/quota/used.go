package quota

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// kind is what an account has some of.
type kind string

const (
	addresses kind = "addresses"
	networks  kind = "networks"
	clusters  kind = "clusters"
)

// Used counts what all but a stack have; the stack's own resources do not block its deploy. It sends plain requests:
// compiling EC2's client alone would take half a minute.
func (a account) Used(ctx context.Context, k kind, mine string) (int, error) {
	var n int
	var err error
	switch k {
	case addresses:
		n, err = a.count(ctx, "DescribeAddresses", mine)
	case networks:
		n, err = a.count(ctx, "DescribeVpcs", mine)
	case clusters:
		n, err = a.clusters(ctx, mine)
	default:
		err = fmt.Errorf("nobody counts them")
	}
	if err != nil {
		return 0, fmt.Errorf("counting %s: %w", k, err)
	}
	return n, nil
}

// count counts the entries of an answer of EC2 but those with the tag of a stack.
func (a account) count(ctx context.Context, action, mine string) (int, error) {
	body, err := a.ec2(ctx, url.Values{"Action": {action}})
	if err != nil {
		return 0, err
	}
	return others(body, mine)
}

// ec2 asks EC2.
func (a account) ec2(ctx context.Context, query url.Values) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url("ec2"), nil)
	if err != nil {
		return nil, err
	}
	query.Set("Version", "2016-11-15")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return a.ask(r, "ec2", []byte(query.Encode()))
}

// others counts the entries of an answer of EC2 that no stack of that name made.
func others(answer []byte, stack string) (int, error) {
	type entry struct {
		Tags []struct {
			Key   string `xml:"key"`
			Value string `xml:"value"`
		} `xml:"tagSet>item"`
	}
	var v struct {
		Addresses []entry `xml:"addressesSet>item"`
		Networks  []entry `xml:"vpcSet>item"`
	}
	if err := xml.Unmarshal(answer, &v); err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	n := 0
	for _, e := range append(v.Addresses, v.Networks...) {
		mine := false
		for _, t := range e.Tags {
			mine = mine || t.Key == "aws:cloudformation:stack-name" && t.Value == stack
		}
		if !mine {
			n++
		}
	}
	return n, nil
}

// clusters counts up to a hundred clusters, the default quota. The cluster of a fleet has the name of its stack without
// its last part.
func (a account) clusters(ctx context.Context, mine string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url("eks")+"clusters?maxResults=100", nil)
	if err != nil {
		return 0, err
	}
	body, err := a.ask(r, "eks", nil)
	if err != nil {
		return 0, err
	}
	var v struct{ Clusters []string }
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	n := 0
	for _, name := range v.Clusters {
		if name != strings.TrimSuffix(mine, "-fleet") {
			n++
		}
	}
	return n, nil
}

// url is the address of a service, or the one endpoint that is configured for all.
func (a account) url(service string) string {
	if at := aws.ToString(a.cfg.BaseEndpoint); at != "" {
		return strings.TrimSuffix(at, "/") + "/"
	}
	return "https://" + service + "." + a.cfg.Region + ".amazonaws.com/"
}

// ask signs and sends a request, and returns the answer's body.
func (a account) ask(r *http.Request, service string, body []byte) ([]byte, error) {
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	who, err := a.cfg.Credentials.Retrieve(r.Context())
	if err != nil {
		return nil, fmt.Errorf("finding credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), who, r, hex.EncodeToString(sum[:]), service, a.cfg.Region,
		time.Now()); err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %.200s", service, resp.Status, answer)
	}
	return answer, nil
}
