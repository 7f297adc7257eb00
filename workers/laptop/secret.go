package laptop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"punctual/shared/executor"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// secretVariable begins the names of variables of the environment that are secrets.
const secretVariable = "PUNCTUAL_SECRET_"

var secretName = text.Pattern(`^[A-Za-z0-9/_+=.@-]{1,400}$`)

// secretARN is how a payload names a secret of the laptop.
func secretARN(name string) string {
	return "arn:aws:secretsmanager:local:000000000000:secret:" + executor.Secrets("", tenant.Local) + name
}

// secrets are those of a file, "" for none, and of the environment, by name. A file is JSON (an object of
// strings) or lines of NAME=value. No error holds a value.
func secrets(file string, environ []string) (map[string]string, error) {
	all := map[string]string{}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read := lines
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			read = object
		}
		if all, err = read(text); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, secretVariable) {
			all[strings.TrimPrefix(name, secretVariable)] = value
		}
	}
	for name, value := range all {
		if !secretName().MatchString(name) {
			return nil, fmt.Errorf("secret %q: want a name of letters, digits and /_+=.@-", name)
		}
		if value == "" {
			return nil, fmt.Errorf("secret %s is empty", name)
		}
	}
	return all, nil
}

func object(text []byte) (map[string]string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, errors.New("this is no object of JSON") // what the decoder says could hold a value
	}
	all := map[string]string{}
	for name, raw := range values {
		var value string
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("secret %s is no string", name)
		}
		all[name] = value
	}
	return all, nil
}

func lines(text []byte) (map[string]string, error) {
	all, n := map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d: want NAME=value", n)
		}
		value = strings.TrimSpace(value)
		if q := value[:min(len(value), 1)]; len(value) > 1 && (q == `"` || q == "'") && strings.HasSuffix(value, q) {
			value = value[1 : len(value)-1]
		}
		all[strings.TrimSpace(name)] = value
	}
	return all, nil
}
