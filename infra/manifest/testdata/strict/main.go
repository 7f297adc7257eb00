// Command strict reads Kubernetes objects, a JSON list, and decodes each into the type that
// Kubernetes itself has for it: an unknown, misspelt or twice given field, or a value of another
// type, is named and fails it. Of a scaler it compiles and runs the formula as KEDA does.
//
// It is a module of its own because those types take half a minute to compile.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/expr-lang/expr"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	strictly "sigs.k8s.io/json"
)

// kinds are built into Kubernetes; the schemas of other kinds are in files next to this module.
var kinds = map[string]func() any{
	"v1/Namespace":                       func() any { return new(core.Namespace) },
	"v1/ServiceAccount":                  func() any { return new(core.ServiceAccount) },
	"v1/ConfigMap":                       func() any { return new(core.ConfigMap) },
	"apps/v1/Deployment":                 func() any { return new(apps.Deployment) },
	"apps/v1/DaemonSet":                  func() any { return new(apps.DaemonSet) },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return new(network.NetworkPolicy) },
	"policy/v1/PodDisruptionBudget":      func() any { return new(policy.PodDisruptionBudget) },
}

func main() {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		fmt.Println("reading the list of objects:", err)
		os.Exit(2)
	}
	decoded, bad := 0, 0
	for _, o := range objects {
		name, done, err := validate(o)
		if err != nil {
			bad++
			fmt.Printf("%s: %v\n", name, err)
		} else if done {
			decoded++
		}
	}
	fmt.Printf("decoded %d of %d\n", decoded, len(objects))
	if bad > 0 {
		os.Exit(1)
	}
}

// validate says what is wrong with an object; done is false for kinds that are not known here.
func validate(text []byte) (name string, done bool, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Name string }
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "?", false, err
	}
	kind := head.APIVersion + "/" + head.Kind
	name = kind + " " + head.Metadata.Name
	if kind == "keda.sh/v1alpha1/ScaledObject" {
		return name, false, formula(text)
	}
	made, known := kinds[kind]
	if !known {
		return name, false, nil
	}
	wrong, err := strictly.UnmarshalStrict(text, made())
	return name, true, errors.Join(append(wrong, err)...)
}

// formula compiles a scaler's formula over its sources, and runs it with each of them silent, all
// of them, and none, as KEDA would.
func formula(text []byte) error {
	var o struct {
		Spec struct {
			Advanced struct {
				ScalingModifiers struct{ Formula string }
			}
			Triggers []struct{ Name string }
		}
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	said := o.Spec.Advanced.ScalingModifiers.Formula
	types := map[string]float64{}
	for _, t := range o.Spec.Triggers {
		types[t.Name] = -1
	}
	if strings.Contains(said, "??") {
		said = "let composite = (" + said + "); composite == nil ? nil : float(composite)"
	} else {
		said = "float(" + said + ")"
	}
	program, err := expr.Compile(said, expr.Env(types))
	if err != nil {
		return err
	}
	run := func(silent func(string) bool) (any, error) {
		values := map[string]any{}
		for i, t := range o.Spec.Triggers {
			values[t.Name] = float64(i + 1) // 1, 2, … of the queues, and last the look ahead
			if silent(t.Name) {
				values[t.Name] = nil
			}
		}
		return expr.Run(program, values)
	}
	n := len(o.Spec.Triggers)
	queues := float64(n * (n - 1) / 2) // 1 + 2 + … of all but the last
	for _, c := range []struct {
		what   string
		silent func(string) bool
		want   any
	}{
		{"all answer", func(string) bool { return false }, queues},
		{"none answers", func(string) bool { return true }, nil},
		{"the queues are silent", func(t string) bool { return t != o.Spec.Triggers[n-1].Name }, float64(n)},
		{"the first is silent", func(t string) bool { return t == o.Spec.Triggers[0].Name }, queues - 1},
		{"the last is silent", func(t string) bool { return t == o.Spec.Triggers[n-1].Name }, queues},
	} {
		if got, err := run(c.silent); err != nil || got != c.want {
			return fmt.Errorf("the formula says %v, %v when %s; want %v", got, err, c.what, c.want)
		}
	}
	return nil
}
