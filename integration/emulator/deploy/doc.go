// Package deploy tests that what `make deploy` puts into an account works: it deploys the real
// templates to a local AWS by the lines that the documents say to type, starts the real worker, and sends requests
// through the API Gateway with signed tokens, as a client would.
//
//	go build ─▶ bootstraps, worker
//	make bootstrap, make deploy … (Data, Flow, Watch) ─▶ MiniStack ◀─ worker
//	                                                    ▲
//	signed token ─▶ API Gateway ─▶ authorizer, functions ┘
//
// The emulator enforces policies: the CDK command is the account's owner, each function has its own
// role, and the worker has its pool's. Their calls are recorded, and none may be denied. MiniStack
// does not check iam:PassRole, the key of queues, nor what Lambda needs to feed a function: tests of
// the templates check those.
//
// The package holds tests only. They need Node.js 20 or later with npm, besides what the emulator
// needs; without them they are skipped, and fail where CI=true.
package deploy
