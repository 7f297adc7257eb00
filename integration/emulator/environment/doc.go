// Package environment gives tests a local AWS: MiniStack for everything, and
// LocalStack for SQS, whose StartMessageMoveTask MiniStack lacks.
//
//	aws := environment.MiniStack(t)   // one for the whole test process, started at first use
//	jobs := table.New(aws.Config(), …)
//
// What always holds: each emulator is installed from its pinned requirement file into its own
// virtual environment in the user's cache, under a lock, so that any number of test processes may
// start at once; it listens on the loopback interface at a free port; it sees neither the user's
// home nor the user's AWS settings; and it ends, with all that it started, when the process that
// started it ends, even by kill -9. The tests of one process share its state, so a test uses unique
// names of tables and queues.
//
// AWS_ENDPOINT_URL names an endpoint to use instead of MiniStack, and AWS_ENDPOINT_URL_SQS one
// instead of LocalStack; nothing is then installed or started.
//
// How it fails: without a usable Python, without the network at the first installation, or when an
// emulator does not start within two minutes, the test is skipped with the reason, and fails where
// CI=true. Logs are kept in the cache, the last few of each emulator; a failing test says where.
//
// It runs on Linux and macOS. The first installation takes about 10 s for MiniStack and 60 s
// (500 MB) for LocalStack, later starts 1 to 3 s.
package environment
