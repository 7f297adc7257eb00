// Package session is what the adapters have in common: how they reach AWS, how long they wait,
// how often they try, and which kind of fault an answer is.
//
//	cfg := session.MustLoad(ctx)              // once, in a main
//	jobs := table.New(cfg, env.TableName)
//
// What always holds: every request has a time limit of its own ([Within]), so that a connection
// that went silent costs one try and not the whole call; tries are bounded ([Tries]) and lie a
// jittered, doubling pause apart; a budget of retries for each client keeps retries
// from making an outage worse. Endpoints are the SDK's business: AWS_ENDPOINT_URL and its
// per-service forms (AWS_ENDPOINT_URL_SQS) work as in any program.
//
// How it fails: [Fault] turns what the SDK returned into an error of package fault, once. An
// answer that never came is fault.Unavailable: the call may have taken effect, so every call
// of ours is safe to repeat. The packages say where a repeated call can see its own effect.
package session
