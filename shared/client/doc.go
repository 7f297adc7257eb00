// Package client calls Punctual's API from Go.
//
//	c, err := client.New("https://punctual.example.com", client.WithToken(token))
//	job, err := c.CreateJob(ctx, "", rest.JobRequest{Task: "echo", Delay: new("3s")})
//	job, err = c.Wait(ctx, job.JobID)
//
// It has a method for each operation. The types of bodies and parameters, and the method and path of each operation,
// are generated from the served OpenAPI document into package rest. This package adds what a document cannot say:
// tokens, time limits, retries, keys, errors, lists as iterators, calendars ([Cron], [Every], [RRule], [Dates]) and
// waiting. All methods call by [Call], which also serves requests that exist as JSON already.
//
// # Retries
//
// A call that may be repeated is repeated after a failure of the network and after 502, 503 and 504:
// every GET, PUT and DELETE without If-Match, every POST with an Idempotency-Key, and a few more that
// change nothing twice, such as a cancel. Creates without a key of yours get a random one, so they may be
// repeated too. Any call is repeated after a 429 that says when to come back, because it has done nothing.
// Waits double from half a second to 20 seconds, are shortened at random by up to a half, and are never
// shorter than Retry-After. The context bounds it all. A DELETE that is repeated can be [NotFound] because
// its first request has deleted what it names.
//
// # Errors
//
// What the API refuses is an [*Error], with the code, the sentence and every violation in the request.
// errors.Is distinguishes them by code: errors.Is(err, client.NotFound). What never reached the API, or
// was cut off, is the error of net/http or of the context.
package client
