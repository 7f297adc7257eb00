package laptop

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"net/http"

	"punctual/shared/client"
)

// seeds are examples of the README and of dags.md, each the body of a PUT, in files named resource.name.json.
//
//go:embed seed
var seeds embed.FS

// Seed puts examples into what is served at url, and says so: a task, a schedule and a dag. Repeating it changes
// nothing.
func Seed(ctx context.Context, url string, w io.Writer) error {
	c, err := client.New(url)
	if err != nil {
		return err
	}
	asJSON, api := "application/json", c.REST()
	for _, seed := range []struct {
		resource, name string
		put            func(context.Context, string, io.Reader) (*http.Response, error)
	}{
		{"tasks", "extract", func(ctx context.Context, name string, body io.Reader) (*http.Response, error) {
			return api.PutTaskWithBody(ctx, name, asJSON, body)
		}},
		{"schedules", "morning", func(ctx context.Context, name string, body io.Reader) (*http.Response, error) {
			return api.PutScheduleWithBody(ctx, name, nil, asJSON, body)
		}},
		{"dags", "etl", func(ctx context.Context, name string, body io.Reader) (*http.Response, error) {
			return api.PutDagWithBody(ctx, name, asJSON, body)
		}},
	} {
		body, err := seeds.ReadFile("seed/" + seed.resource + "." + seed.name + ".json")
		if err != nil {
			return err
		}
		_, err = client.Read[struct{}](seed.put(ctx, seed.name, bytes.NewReader(body))) //nolint:bodyclose // Read does
		if err != nil {
			return fmt.Errorf("putting %s/%s: %w", seed.resource, seed.name, err)
		}
		if _, err := fmt.Fprintf(w, "%s/v1/%s/%s\n", url, seed.resource, seed.name); err != nil {
			return err
		}
	}
	return nil
}
