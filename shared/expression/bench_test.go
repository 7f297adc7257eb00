package expression_test

import (
	"context"
	"testing"

	"punctual/shared/expression"
)

// BenchmarkProgram_CostOfAStep reports the time of one step of a long evaluation.
func BenchmarkProgram_CostOfAStep(b *testing.B) {
	p, wrong := expression.Compile("p.list.filter(a, a == 1 && a < 2).size() > 1", variables)
	if wrong != nil {
		b.Fatal(wrong)
	}
	list := make([]any, 50_000)
	for i := range list {
		list[i] = i
	}
	facts := map[string]any{"p": expression.From(map[string]any{"list": list})}
	steps := 0
	for b.Loop() {
		meter := expression.NewMeter(expression.MaxWork)
		if _, err := p.Eval(context.Background(), facts, meter); err != nil {
			b.Fatal(err)
		}
		steps += expression.MaxWork - meter.Left()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}

// BenchmarkCompile measures an expression as most are.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, wrong := expression.Compile("p.result.rows > 0", variables); wrong != nil {
			b.Fatal(wrong)
		}
	}
}
