package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"punctual/shared/cache"
)

// sigv4 is how to sign requests to a deployment of auth=iam, by the credentials that AWS's tools would take.
type sigv4 struct {
	Region  string `yaml:"region"`  // of the API; "": the profile's
	Profile string `yaml:"profile"` // "": the environment's
}

// apiGateway is the service in whose name requests are signed.
const apiGateway = "execute-api"

// signing signs each request.
type signing struct {
	how    sigv4
	config *cache.Cache[struct{}, aws.Config]
}

func newSigning(how sigv4) *signing {
	return &signing{how: how, config: cache.New[struct{}, aws.Config](cache.Options[aws.Config]{})}
}

// ready is asked before each request, in place of a token: without credentials it returns a *notSignedIn, which
// hides what the network may have done: no repetition mends it.
func (s *signing) ready(ctx context.Context) (noToken string, err error) {
	c, err := s.load(ctx)
	if err != nil {
		return "", err
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return "", &notSignedIn{fmt.Errorf("finding AWS credentials to sign by: %s", err.Error())}
	}
	return "", nil
}

// RoundTrip sends a request, signed.
func (s *signing) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := s.load(r.Context())
	if err != nil {
		return nil, err
	}
	credentials, err := c.Credentials.Retrieve(r.Context())
	if err != nil {
		return nil, err
	}
	signed := r.Clone(r.Context())
	var body []byte
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close() // it has been read
		if err != nil {
			return nil, err
		}
		signed.Body = io.NopCloser(bytes.NewReader(body))
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), credentials, signed, hex.EncodeToString(sum[:]), apiGateway, c.Region,
		time.Now())
	if err != nil {
		return nil, fmt.Errorf("signing the request: %w", err)
	}
	return http.DefaultTransport.RoundTrip(signed)
}

// load finds the region and the credentials, once.
func (s *signing) load(ctx context.Context) (aws.Config, error) {
	return s.config.Get(ctx, struct{}{}, func(ctx context.Context) (aws.Config, error) {
		c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(s.how.Region),
			awsconfig.WithSharedConfigProfile(s.how.Profile))
		if err != nil {
			return c, &notSignedIn{fmt.Errorf("reading AWS's settings: %w", err)}
		}
		if c.Region == "" {
			return c, &notSignedIn{errors.New("signing wants a region: sigv4.region of the context, or AWS_REGION")}
		}
		return c, nil
	})
}
