package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"punctual/shared/cache"
	"punctual/shared/client"
)

// laptopURL is where make run and punctual serve serve.
const laptopURL = "http://localhost:8080"

// config is the file of contexts.
type config struct {
	Current  string                `yaml:"current"` // where neither --context nor --url says another
	Contexts map[string]deployment `yaml:"contexts"`
}

// deployment is one, and how to sign in there.
type deployment struct {
	URL          string `yaml:"url"`
	TokenCommand string `yaml:"token_command"` // a shell's; what it writes is the token
	OIDC         *oidc  `yaml:"oidc"`          // in its place: login
	SigV4        *sigv4 `yaml:"sigv4"`         // in its place: requests are signed
}

// where finds the API: --url, else a context of the config file, whose name it sets, else the laptop. A flag beats
// the environment, and a token of the environment goes only to the host that the environment means; see ownsToken.
func (c *commands) where() (deployment, error) {
	envURL, envContext := c.URL, c.Context
	switch url, context := c.typed["url"], c.typed["context"]; {
	case url && !context:
		envURL, c.Context = os.Getenv("PUNCTUAL_URL"), ""
	case context && !url:
		envContext, c.URL = os.Getenv("PUNCTUAL_CONTEXT"), ""
	default:
		return c.chosen()
	}
	at, err := c.chosen()
	if err == nil && c.Token != "" && !c.typed["token"] && !c.ownsToken(at, envURL, envContext) {
		c.Token, c.kept = "", true
	}
	return at, err
}

// ownsToken reports whether PUNCTUAL_TOKEN belongs to the deployment that a flag names. It belongs to the host of
// PUNCTUAL_URL, else of the context that PUNCTUAL_CONTEXT names. Where the environment names neither, it belongs to a
// context that is typed; a typed address must be that of the current context, or of the laptop.
func (c *commands) ownsToken(at deployment, envURL, envContext string) bool {
	if envURL != "" {
		return sameHost(at.URL, envURL)
	}
	if envContext == "" && c.typed["context"] {
		return true
	}
	owner := deployment{URL: laptopURL}
	if file, err := readConfig(c.Config); err == nil {
		if known, ok := file.Contexts[cmp.Or(envContext, file.Current)]; ok {
			owner = known
		}
	}
	return sameHost(at.URL, owner.URL)
}

// sameHost reports whether two addresses have the same scheme, host and port.
func sameHost(a, b string) bool {
	one, err := url.Parse(a)
	two, err2 := url.Parse(b)
	return err == nil && err2 == nil && one.Host != "" && strings.EqualFold(one.Scheme, two.Scheme) &&
		strings.EqualFold(one.Host, two.Host)
}

// chosen returns the deployment that the flags and the environment choose.
func (c *commands) chosen() (deployment, error) {
	if c.URL != "" {
		if c.Context != "" {
			return deployment{}, errors.New("--url and --context (or their variables) are not given together")
		}
		return deployment{URL: c.URL}, nil
	}
	file, err := readConfig(c.Config)
	if err != nil {
		return deployment{}, err
	}
	if c.Context == "" {
		c.Context = file.Current
	}
	if c.Context == "" {
		return deployment{URL: laptopURL}, nil
	}
	at, ok := file.Contexts[c.Context]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
		return deployment{}, fmt.Errorf("there is no context %q; known: %s", c.Context, plain(known))
	}
	choices := 0
	for _, there := range []bool{at.TokenCommand != "", at.OIDC != nil, at.SigV4 != nil} {
		if there {
			choices++
		}
	}
	if choices > 1 {
		return deployment{}, fmt.Errorf("context %s signs in by more than one of token_command, oidc and sigv4",
			c.Context)
	}
	return at, nil
}

// signIn is how to sign in at a deployment: by --token, else as its context says. A context's token goes to its own
// URL only.
func (c *commands) signIn(at deployment) ([]client.Option, error) {
	own := at.TokenCommand != "" || at.SigV4 != nil || at.OIDC != nil
	if own && c.typed["context"] && !c.typed["token"] {
		c.Token = ""
	}
	switch {
	case c.Token != "":
		return []client.Option{client.WithToken(c.Token)}, nil
	case at.TokenCommand != "":
		return []client.Option{client.WithTokenSource(tokenOf(at.TokenCommand))}, nil
	case at.SigV4 != nil:
		by := newSigning(*at.SigV4)
		return []client.Option{client.WithTokenSource(by.ready),
			client.WithHTTPClient(&http.Client{Transport: by})}, nil
	case at.OIDC != nil:
		path, err := c.sessionPath()
		if err != nil {
			return nil, err
		}
		return []client.Option{client.WithTokenSource(at.OIDC.tokenOf(at.URL, path))}, nil
	}
	return nil, nil
}

// readConfig reads the config file at path, or the user's, which need not be there.
func readConfig(path string) (config, error) {
	var c config
	optional := path == ""
	if optional {
		dir, err := os.UserConfigDir()
		if err != nil {
			return c, nil //nolint:nilerr // who has no home has no config file
		}
		path = filepath.Join(dir, "punctual", "config.yaml")
	}
	text, err := os.ReadFile(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	var n yaml.Node
	err = yaml.NewDecoder(bytes.NewReader(text)).Decode(&n)
	if errors.Is(err, io.EOF) {
		return c, nil // it holds nothing
	}
	if err == nil {
		err = unknownKeys(&n, reflect.TypeFor[config]())
	}
	if err == nil {
		err = n.Decode(&c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, broken(err))
	}
	return c, nil
}

// tokenKept is how long a token is used before the command is asked again: less than any token lives.
const tokenKept = time.Minute

// tokenOf runs a command for a token when the last one is a minute old.
func tokenOf(command string) client.TokenSource {
	kept := cache.New[struct{}, string](cache.Options[string]{Age: tokenKept})
	return func(ctx context.Context) (string, error) {
		return kept.Get(ctx, struct{}{}, func(ctx context.Context) (string, error) { return runForToken(ctx, command) })
	}
}

func runForToken(ctx context.Context, command string) (string, error) {
	out, err := exec.CommandContext(ctx, "sh", "-c", command).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("token_command: %w: %s", err, plain(strings.TrimSpace(string(e.Stderr))))
	}
	if err != nil {
		return "", fmt.Errorf("token_command: %w", err)
	}
	token := strings.TrimSpace(string(out))
	if token == "" || strings.ContainsAny(token, " \n") {
		return "", errors.New("token_command: it wrote no token, or more than one word")
	}
	return token, nil
}
