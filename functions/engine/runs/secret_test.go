package runs_test

import (
	"fmt"
	"testing"

	"punctual/shared/dag"
	"punctual/shared/job"
)

func TestPayload_NamesOnlyTheSecretsOfTheDefinition(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/hook-AbCdEf"
	b := setup(t)
	d := with(def("a", "b: a", "m: a"), "b", func(n *dag.Node) {
		n.Task = "http"
		n.Payload = []byte(fmt.Sprintf(`{"url":"https://example.com","sign_with":%q,
			"headers":{"X-Correlation":"${nodes.a.result}","X-Key":%q}}`, arn, arn))
	})
	d = with(d, "m", func(n *dag.Node) {
		n.Task, n.ForEach = "http", "${[nodes.a.result]}"
		n.Payload = []byte(`{"url":"https://example.com","headers":{"X-Correlation":"${item}"}}`)
	})
	b.gives = func(job.Row) string { return fmt.Sprintf("%q", arn) }
	b.create(d)
	b.calm()
	row, item := b.current("b"), b.items("m", 1)[0]
	for field, want := range map[string]bool{"headers.X-Correlation": false, "headers.X-Key": true, "sign_with": true,
		"auth.bearer": false} {
		if got := row.MayResolve(field); got != want {
			t.Errorf("%s names a secret: %v, want %v", field, got, want)
		}
	}
	if item.MayResolve("headers.X-Correlation") {
		t.Error("what an item's expression rendered names a secret")
	}
	// A job of a version that recorded nothing resolves nothing, and a plain job everything.
	row.DefinedSecrets = ""
	if row.MayResolve("sign_with") {
		t.Error("a node without a record names a secret")
	}
	row.RunID = ""
	if !row.MayResolve("headers.X-Key") {
		t.Error("a plain job names no secret")
	}
}
