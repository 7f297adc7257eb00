package handler

import (
	"context"
	"errors"

	"punctual/workers/worker"
)

// All registers every handler of this deployment under its task's name.
func All(r *worker.Registry) {
	worker.Register(r, "greet", greet, worker.Concurrency(20))
}

// Greeting is the payload of the task "greet".
type Greeting struct {
	Name string `json:"name"`
}

// Greeted is its result.
type Greeted struct {
	Text string `json:"text"`
	Key  string `json:"key"` // the same on every retry: the person who is greeted could recognize a repetition by it
}

// greet is an example to copy. An error is retried by the task's policy; here another try cannot
// help, since a payload without a name stays one.
func greet(ctx context.Context, j worker.Job[Greeting]) (Greeted, error) {
	if j.Payload.Name == "" {
		return Greeted{}, worker.Permanent(errors.New("the payload names nobody to greet"))
	}
	j.Progress(1, 1, "greeting")
	worker.Log(ctx).Info("greeting", "name", j.Payload.Name)
	return Greeted{Text: "Hello, " + j.Payload.Name + "!", Key: j.Key}, ctx.Err()
}
