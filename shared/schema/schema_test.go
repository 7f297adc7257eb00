package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// left is the context of a client that has left without anybody having waited for that.
type left struct{ context.Context }

func (left) Err() error { return context.Canceled }

func TestProgram_StopsJudgingWhenTheClientHasLeft(t *testing.T) {
	t.Parallel()
	p, err := NewCache().compile(json.RawMessage(`{"items":{"minimum":10}}`))
	if err != nil {
		t.Fatal(err)
	}
	items := make([]any, 50_000)
	for i := range items {
		items[i] = json.Number("5")
	}
	if err := p.judge(left{t.Context()}, items, WorkPerValue, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the judgement ended with %.200v", err)
	}
	if err := p.judge(t.Context(), []any{json.Number("12")}, WorkPerValue, 1); err != nil {
		t.Errorf("the next payload was judged with %v", err)
	}
}

func TestProgram_WaitsNoLongerThanTheClient(t *testing.T) {
	t.Parallel()
	p, err := NewCache().compile(json.RawMessage(`{"minimum":10}`))
	if err != nil {
		t.Fatal(err)
	}
	p.turn <- struct{}{} // another payload is being judged
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := p.judge(ctx, json.Number("12"), WorkPerValue, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the judgement ended with %v", err)
	}
}

func TestCache_IsBoundedByWeight(t *testing.T) {
	t.Parallel()
	c := NewCache()
	var texts []json.RawMessage
	sum, kept := 0, 0
	for i := range 100 {
		schema := fmt.Sprintf(`{"title":"%d","allOf":[`, i)
		for n := range 200 {
			schema += fmt.Sprintf(`{"properties":{"some-name-that-is-long-%d":{"minLength":%d}}},`, n, n)
		}
		texts = append(texts, json.RawMessage(schema+`true]}`))
		p, err := c.compile(texts[i])
		if err != nil {
			t.Fatal(err)
		}
		if p.weight < 400_000 {
			t.Fatalf("a schema of 400 subschemas weighs %d bytes", p.weight)
		}
	}
	for _, text := range texts {
		if !c.Has(text) {
			continue
		}
		p, err := c.compile(text)
		if err != nil {
			t.Fatal(err)
		}
		sum, kept = sum+p.weight, kept+1
	}
	if sum > maxCached || sum < maxCached/2 || !c.Has(texts[len(texts)-1]) {
		t.Errorf("%d schemas of %d bytes are kept", kept, sum)
	}
	if p, _ := c.compile(json.RawMessage(`{"title":"0"}`)); p == nil || !c.Has(json.RawMessage(`{"title":"0"}`)) {
		t.Error("nothing can be added any more")
	}
}
