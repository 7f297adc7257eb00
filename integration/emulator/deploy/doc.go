// Package deploy proves that what `make deploy` puts into an account works: it deploys the real
// templates onto a local AWS with the CDK command, starts the real worker beside it, and asks
// through the API Gateway with signed tokens, as a client would.
//
//	go build ─▶ bootstraps, infra, worker
//	cdk bootstrap, cdk deploy (Data, Flow, Watch) ─▶ MiniStack ◀─ worker
//	                                                    ▲
//	signed token ─▶ API Gateway ─▶ authorizer, functions ┘
//
// The emulator judges everybody by their policies: the CDK command is the account's owner, each
// function has its own role, and the worker takes its pool's. What they call is recorded, and
// none of it may be denied. MiniStack does not ask for iam:PassRole, the key behind queues, nor what
// Lambda needs to feed a function: tests of the templates hold those.
//
// It holds tests only. They need Node.js 20 or later with npm besides what the emulator needs;
// without them they are skipped, and fail where CI=true.
package deploy
