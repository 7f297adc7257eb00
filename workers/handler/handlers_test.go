package handler

import (
	"testing"

	"punctual/workers/worker"
	"punctual/workers/worker/workertest"
)

//proof:of 16
func TestGreet_Greets(t *testing.T) {
	t.Parallel()
	t.Run("greets by name, under the same key on a retry", func(t *testing.T) {
		t.Parallel()
		first := workertest.Run(t, greet, Greeting{Name: "Ada"})
		repeated := workertest.Run(t, greet, Greeting{Name: "Ada"}, workertest.Attempt(2))
		if first.Err != nil || first.Result.Text != "Hello, Ada!" || repeated.Result != first.Result {
			t.Errorf("greeted with %+v, then %+v", first, repeated)
		}
	})
	t.Run("refuses for good to greet nobody", func(t *testing.T) {
		t.Parallel()
		if got := workertest.Run(t, greet, Greeting{}); got.Ended != workertest.Dead {
			t.Errorf("it ended %s: %v", got.Ended, got.Err)
		}
	})
}

//proof:of 114
func TestAll_RegistersEveryHandler(t *testing.T) {
	t.Parallel()
	r := worker.NewRegistry()
	All(r)
	if !r.Knows("greet") {
		t.Error("no worker would know the task greet")
	}
}
