// Package deploy proves that what `make deploy` puts into an account works: it deploys the real
// templates onto a local AWS with the CDK command, starts the real worker beside it, and asks
// through the API Gateway with signed tokens, as a client would.
//
//	go build ─▶ bootstraps, infra, worker
//	cdk bootstrap, cdk deploy (Data, Flow, Watch) ─▶ MiniStack ◀─ worker
//	                                                    ▲
//	signed token ─▶ API Gateway ─▶ authorizer, functions ┘
//
// It holds tests only. They need Node.js 20 or later with npm besides what the emulator needs;
// without them they are skipped, and fail where CI=true.
package deploy
