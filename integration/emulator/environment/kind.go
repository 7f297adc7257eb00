package environment

import (
	"embed"
	"fmt"
	"path/filepath"
)

// Kind is a make of emulator.
type Kind struct {
	name   string // also the name of its requirement files
	module string // the Python module to run
	given  string // the variable that names an endpoint to use instead
	ready  string // the path that answers 200 once all is up

	// environ returns its environment, without what every child gets.
	environ func(port int, folder string) []string
}

//go:embed ministack.txt ministack.lock.txt localstack.txt localstack.lock.txt openapi.txt openapi.lock.txt
//go:embed webhooks.txt webhooks.lock.txt
var requirements embed.FS

var miniStack = Kind{
	name: "ministack", module: "ministack", given: "AWS_ENDPOINT_URL", ready: "/_ministack/ready",
	environ: func(port int, folder string) []string {
		return []string{
			fmt.Sprint("GATEWAY_PORT=", port),
			"BIND_HOST=127.0.0.1",
			fmt.Sprint("AWS_ENDPOINT_URL=http://127.0.0.1:", port), // handed to functions, which call back
			"MINISTACK_REGION=" + Region,
			"SFTP_ENABLED=0",     // would take port 2222
			"IOT_MTLS_ENABLED=0", // would take port 8883
			"DOCKER_HOST=unix://" + filepath.Join(folder, "no-docker.sock"),
			"STATE_DIR=" + filepath.Join(folder, "state"),
			"S3_DATA_DIR=" + filepath.Join(folder, "s3"),
		}
	},
}

var localStack = Kind{
	name: "localstack", module: "localstack.runtime.main", given: "AWS_ENDPOINT_URL_SQS", ready: "/_localstack/health",
	environ: func(port int, folder string) []string {
		return []string{
			fmt.Sprint("GATEWAY_LISTEN=127.0.0.1:", port),
			"GATEWAY_SERVER=hypercorn", // the default server binds all interfaces
			"SERVICES=sqs",
			"STRICT_SERVICE_LOADING=1",
			"SQS_ENDPOINT_STRATEGY=dynamic", // queue URLs name the port that was asked
			"SKIP_SSL_CERT_DOWNLOAD=1",
			"DISABLE_EVENTS=1",
			"DNS_ADDRESS=0",
			"FILESYSTEM_ROOT=" + filepath.Join(folder, "localstack"),
		}
	},
}

// MiniStackKind is for starting a separate emulator; tests share one by MiniStack(t) and
// LocalStack(t).
func MiniStackKind() Kind { return miniStack }

// LocalStackKind is LocalStack serving SQS only; see MiniStackKind.
func LocalStackKind() Kind { return localStack }

// String is the name of the emulator.
func (k Kind) String() string { return k.name }
