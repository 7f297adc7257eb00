package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"punctual/shared/fault"
)

// recordTo names the variable that names the file to which this process appends the calls that
// it makes, each once; without it nothing is recorded. A test compares them with what its role
// may do. Several processes may share a file.
const recordTo = "PUNCTUAL_RECORD_CALLS"

// recorder appends lines of a process's name, "service:Operation" and what the call is about,
// parted by tabs, and once more with "denied" behind it where AWS said so. It notes names of resources only, never what
// is in them.
type recorder struct {
	by   string
	mu   sync.Mutex
	seen map[string]bool
	to   *os.File
}

// recorded returns cfg for clients whose calls are appended to a file.
func recorded(cfg aws.Config, name string) (aws.Config, error) {
	to, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return cfg, fmt.Errorf("recording calls, as %s asks: %w", recordTo, err)
	}
	r := &recorder{
		by: cmp.Or(os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), filepath.Base(os.Args[0])), seen: map[string]bool{}, to: to,
	}
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("RecordCalls", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			service := strings.ToLower(strings.ReplaceAll(awsmiddleware.GetServiceID(ctx), " ", ""))
			call := service + ":" + awsmiddleware.GetOperationName(ctx)
			r.note(call, in.Parameters, "")
			out, metadata, err := next.HandleInitialize(ctx, in)
			if err != nil && Kind(err) == fault.Forbidden {
				r.note(call, in.Parameters, "\tdenied")
			}
			return out, metadata, err
		}), middleware.After)
	})
	return cfg, nil
}

func (r *recorder) note(call string, input any, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts(call, input) {
		line := r.by + "\t" + p + outcome + "\n"
		if !r.seen[line] {
			r.seen[line] = true
			_, _ = r.to.WriteString(line) // in one piece; a call is not worth less for not being noted
		}
	}
}

// about are the fields by which the services' inputs name what they are about.
var about = []string{
	"TableName", "QueueUrl", "QueueName", "Bucket", "GroupName", "FunctionName", "Resource", "SecretId",
}

// parts lists what a call is made of, as "service:Operation<tab>about": a transaction is made of
// its items, each with its kind, as policies see it.
func parts(call string, input any) []string {
	v := reflect.Indirect(reflect.ValueOf(input))
	if v.Kind() != reflect.Struct {
		return []string{call + "\t"}
	}
	if items := v.FieldByName("TransactItems"); items.IsValid() {
		var all []string
		for i := range items.Len() {
			item := reflect.Indirect(items.Index(i))
			for f := range item.NumField() {
				if field := item.Field(f); field.Kind() == reflect.Pointer && !field.IsNil() {
					all = append(all, call+"."+item.Type().Field(f).Name+"\t"+named(field.Elem()))
				}
			}
		}
		return all
	}
	if tables := v.FieldByName("RequestItems"); tables.IsValid() {
		var all []string
		for _, k := range tables.MapKeys() {
			all = append(all, call+"\t"+k.String())
		}
		slices.Sort(all)
		return all
	}
	return []string{call + "\t" + named(v)}
}

// named is the resource that an input names, and "/index/" with the index that it reads.
func named(input reflect.Value) string {
	text := func(field string) string {
		f := input.FieldByName(field)
		if !f.IsValid() || f.Kind() != reflect.Pointer || f.IsNil() || f.Elem().Kind() != reflect.String {
			return ""
		}
		return f.Elem().String()
	}
	for _, field := range about {
		if name := text(field); name != "" {
			if index := text("IndexName"); index != "" {
				name += "/index/" + index
			}
			return name
		}
	}
	return ""
}
