package laptop

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"

	"punctual/shared/client"
	"punctual/shared/client/rest"
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
	for _, seed := range []struct {
		resource, name string
		put            rest.Operation
	}{
		{"tasks", "extract", rest.PutTask},
		{"schedules", "morning", rest.PutSchedule},
		{"dags", "etl", rest.PutDag},
	} {
		body, err := seeds.ReadFile("seed/" + seed.resource + "." + seed.name + ".json")
		if err != nil {
			return err
		}
		_, err = client.Call[struct{}](ctx, c, seed.put,
			client.Request{Path: []string{seed.name}, Body: json.RawMessage(body)})
		if err != nil {
			return fmt.Errorf("putting %s/%s: %w", seed.resource, seed.name, err)
		}
		if _, err := fmt.Fprintf(w, "%s/v1/%s/%s\n", url, seed.resource, seed.name); err != nil {
			return err
		}
	}
	return nil
}
