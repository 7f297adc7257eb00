package executor

import (
	"bytes"
	"encoding/json"
	"io"
)

// decode reads a whole payload into v; fields that v has not are refused. It says only
// whether: encoding/json's errors can quote what they read.
func decode(payload json.RawMessage, v any) bool {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if d.Decode(v) != nil {
		return false
	}
	_, err := d.Token()
	return err == io.EOF
}
