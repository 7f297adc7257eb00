package itemtest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"punctual/shared/item"
	"punctual/shared/text"
)

// RequireStored checks a type by a value with all fields set, each to another value. The value must be read as it was
// written. Its item must be the golden one: an item that was stored once must be readable for ever, so that one only
// ever grows by the lines of a new attribute.
func RequireStored[T any](
	t *testing.T, golden string, full T, write func(T) item.Item, read func(item.Item) (T, error),
) {
	t.Helper()
	for _, name := range unset(reflect.ValueOf(full)) {
		t.Errorf("the full value has no %s", name)
	}
	i := write(full)
	got, err := read(i)
	if err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("it became\n%+v, %v, and was\n%+v", got, err, full)
	}
	var is bytes.Buffer
	if err := json.Indent(&is, text.MustJSON(i), "", "\t"); err != nil {
		t.Fatal(err)
	}
	if is.WriteByte('\n'); is.String() != golden {
		t.Errorf("the item is not the golden one:\n%s", &is)
	}
}

// unset lists the fields that have their zero value, also those of structs in v.
func unset(v reflect.Value) []string {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return nil
	}
	var names []string
	for n := range v.NumField() {
		name := v.Type().Field(n).Name
		switch field := v.Field(n); {
		case field.IsZero():
			names = append(names, name)
		case field.Kind() == reflect.Struct:
			for _, inner := range unset(field) {
				names = append(names, name+"."+inner)
			}
		}
	}
	return names
}
