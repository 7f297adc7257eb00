package construct

import (
	"encoding/json"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Version is the stage of the API, so that the URL of a job ends in /v1/jobs/…, as its
// Location header says. The functions see the whole path in the request's context.
const Version = "v1"

// authorizerKeeps is how long the gateway caches an answer of the authorizer: a token that is revoked or expires is
// accepted for that much longer.
const authorizerKeeps = 60 // seconds

// consolePath is where the console page is below the version, as functions/console serves it.
const consolePath = "console"

// RESTProps says how the API is secured.
type RESTProps struct {
	Name          string
	Signed        bool // the gateway verifies signatures, and there is no authorizer
	Rate, Burst   int
	Log           awslogs.ILogGroup // a line for each request
	ManageLogRole bool              // set the account's role for API Gateway's logs
}

// Routes are the functions that answer.
type Routes struct {
	Read, Write Function  // GET and HEAD go to the one, everything else to the other
	Search      *Function // gets the lists of jobs and dead letters instead of Read; nil: there is none
	Authorizer  Function  // unless requests are signed
}

// REST is the gateway of the API. Its only routes are those without a token. The functions answer all others, so that a
// wrong path or method is answered as the API documents it.
type REST struct {
	awsapigateway.RestApi
	Log    awslogs.ILogGroup
	signed bool
}

// NewREST makes it, without routes: functions may get its address before it has them.
func NewREST(scope constructs.Construct, id string, p RESTProps) REST {
	api := awsapigateway.NewRestApi(scope, jsii.String(id), &awsapigateway.RestApiProps{
		RestApiName: jsii.String(p.Name), Description: jsii.String("Punctual: say what to run and when"),
		EndpointTypes:  &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		CloudWatchRole: jsii.Bool(false),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:           jsii.String(Version),
			ThrottlingRateLimit: jsii.Number(p.Rate), ThrottlingBurstLimit: jsii.Number(p.Burst),
			LoggingLevel:         awsapigateway.MethodLoggingLevel_ERROR,
			DataTraceEnabled:     jsii.Bool(false),
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(p.Log), AccessLogFormat: accessLog(),
		},
	})
	if p.ManageLogRole {
		account := logAccount(scope)
		api.DeploymentStage().Node().AddDependency(account)
	}
	refusals(api, p.Signed)
	return REST{api, p.Log, p.Signed}
}

// ConsoleURL is the address of the console page. It waits for nothing but the API itself: the API's own Url waits
// for all routes, and thus for the functions, which get the client that has this address.
func (r REST) ConsoleURL() *string {
	return jsii.String("https://" + *r.RestApiId() + ".execute-api." + *awscdk.Stack_Of(r.RestApi).Region() +
		".amazonaws.com/" + Version + "/" + consolePath)
}

// Route sends requests to the functions.
func (r REST) Route(p Routes) {
	api := r.RestApi
	through := func(f Function) awsapigateway.Integration {
		return awsapigateway.NewLambdaIntegration(f.Live,
			&awsapigateway.LambdaIntegrationOptions{AllowTestInvoke: jsii.Bool(false)})
	}
	read, write := through(p.Read), through(p.Write)
	open := &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE}
	guarded := &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_IAM}
	if !r.signed {
		guarded.AuthorizationType = awsapigateway.AuthorizationType_CUSTOM
		guarded.Authorizer = awsapigateway.NewRequestAuthorizer(api, jsii.String("Authorizer"),
			&awsapigateway.RequestAuthorizerProps{
				Handler:         p.Authorizer.Live,
				IdentitySources: &[]*string{awsapigateway.IdentitySource_Header(jsii.String("Authorization"))},
				ResultsCacheTtl: awscdk.Duration_Seconds(jsii.Number(authorizerKeeps)),
			})
	}
	get := jsii.String("GET")
	for _, path := range []string{"health", "openapi.json"} {
		api.Root().AddResource(jsii.String(path), nil).AddMethod(get, read, open)
	}
	problems := api.Root().AddResource(jsii.String("problems"), nil)
	problems.AddMethod(get, read, open)
	problems.AddResource(jsii.String("{code}"), nil).AddMethod(get, read, open)
	page := api.Root().AddResource(jsii.String(consolePath), nil) // it has no data; what it asks for needs a token
	page.AddMethod(get, read, open)
	page.AddResource(jsii.String("{proxy+}"), nil).AddMethod(get, read, open)
	route := func(at awsapigateway.IResource, path string, read awsapigateway.Integration) awsapigateway.IResource {
		to := at.AddResource(jsii.String(path), nil)
		to.AddMethod(get, read, guarded)
		to.AddMethod(jsii.String("HEAD"), read, guarded)
		to.AddMethod(jsii.String("ANY"), write, guarded)
		return to
	}
	const others = "{proxy+}"
	route(api.Root(), others, read)
	if p.Search != nil {
		search := through(*p.Search)
		route(route(api.Root(), "jobs", search), others, read)
		letters := route(api.Root(), "dead-letters", search)
		route(letters, "groups", search)
		route(letters, others, read)
	}
}

// accessLog is one line of JSON per request: who, what, how long. No header, no body, no query:
// any of them could hold a secret.
func accessLog() awsapigateway.AccessLogFormat {
	line, _ := json.Marshal(map[string]string{ // strings alone cannot fail
		"request_id": "$context.requestId", "tenant_id": "$context.authorizer.tenant", "method": "$context.httpMethod",
		"path":   "$context.path",
		"status": "$context.status", "ms": "$context.responseLatency", "integration_ms": "$context.integrationLatency",
		"authorizer_ms": "$context.authorizer.latency", "bytes": "$context.responseLength",
		"ip": "$context.identity.sourceIp", "caller": "$context.identity.userArn",
		"time": "$context.requestTimeEpoch", "error": "$context.error.responseType",
	})
	return awsapigateway.AccessLogFormat_Custom(jsii.String(string(line)))
}

// logAccount gives API Gateway a role to write logs with, once per account and region.
func logAccount(scope constructs.Construct) constructs.Construct {
	stack := awscdk.Stack_Of(scope)
	role := awsiam.NewRole(scope, jsii.String("ApiLogRole"), &awsiam.RoleProps{
		Description: jsii.String("With which API Gateway writes the logs of all APIs of this region"),
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("apigateway.amazonaws.com"), nil),
	})
	allow(role, strs("logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogGroups", "logs:DescribeLogStreams",
		"logs:PutLogEvents", "logs:GetLogEvents", "logs:FilterLogEvents"),
		stack.FormatArn(&awscdk.ArnComponents{
			Service: jsii.String("logs"), Resource: jsii.String("log-group"), ResourceName: jsii.String("*"),
			ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
		}))
	account := awsapigateway.NewCfnAccount(scope, jsii.String("ApiAccount"),
		&awsapigateway.CfnAccountProps{CloudWatchRoleArn: role.RoleArn()})
	account.Node().AddDependency(role)
	account.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN, nil) // other APIs may use it by now
	role.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN)
	return account
}

// refusal is what the gateway itself answers, in the API's own form.
type refusal struct {
	id          string
	is          awsapigateway.ResponseType
	status      int
	code, title string
	detail      string
	retryAfter  int // seconds; 0: no use
}

// refusals gives every answer that API Gateway makes by itself the form of a problem.
func refusals(api awsapigateway.RestApi, signed bool) {
	const away = "Service unavailable"
	all := []refusal{
		{"filtered", awsapigateway.ResponseType_WAF_FILTERED(), 403, "forbidden", "That is not allowed",
			"The address sends too many requests, or is known for attacks.", 0},
		{"no-such-resource", awsapigateway.ResponseType_RESOURCE_NOT_FOUND(), 404, "not_found", "Not found",
			"No call has this path.", 0},
		{"too-large", awsapigateway.ResponseType_REQUEST_TOO_LARGE(), 413, "too_large", "Body too large",
			"The body is over 10 MB.", 0},
		{"throttled", awsapigateway.ResponseType_THROTTLED(), 429, "rate_limited", "Too many requests",
			"The API takes no more requests this second.", 1},
		{"quota", awsapigateway.ResponseType_QUOTA_EXCEEDED(), 429, "rate_limited", "Too many requests",
			"The quota is used up.", 3600},
		{"failed", awsapigateway.ResponseType_INTEGRATION_FAILURE(), 503, "unavailable", away,
			"The request may or may not have been taken; with an Idempotency-Key it is safe to repeat.", 2},
		{"slow", awsapigateway.ResponseType_INTEGRATION_TIMEOUT(), 503, "unavailable", away,
			"The answer took too long; with an Idempotency-Key it is safe to repeat.", 2},
		{"broken", awsapigateway.ResponseType_DEFAULT_5XX(), 503, "unavailable", away,
			"Something that we need does not answer; with an Idempotency-Key it is safe to repeat.", 2},
	}
	if signed {
		all = append(all, ofSignatures()...)
	} else {
		all = append(all, ofTokens()...)
	}
	for _, r := range all {
		r.add(api, signed)
	}
}

func ofTokens() []refusal {
	const unjudged = "The token could not be judged."
	return []refusal{
		{"unauthorized", awsapigateway.ResponseType_UNAUTHORIZED(), 401, "unauthenticated", "Authentication required",
			"Send a valid bearer token.", 0},
		{"denied", awsapigateway.ResponseType_ACCESS_DENIED(), 403, "forbidden", "Forbidden",
			"The token allows nothing here.", 0},
		{"no-such-path", awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN(), 404, "not_found", "Not found",
			"No call has this path and method.", 0},
		{"no-authorizer", awsapigateway.ResponseType_AUTHORIZER_FAILURE(), 503, "unavailable", "Service unavailable",
			unjudged, 2},
		{"no-authorizer-set", awsapigateway.ResponseType_AUTHORIZER_CONFIGURATION_ERROR(), 503, "unavailable",
			"Service unavailable", unjudged, 2},
		unreadable("bad", awsapigateway.ResponseType_DEFAULT_4XX()),
	}
}

// ofSignatures are the answers to who signs badly, or does not sign. The gateway gives a missing signature the kind of
// an unknown path, and keys that it does not know, or what is no signature at all, none of their own.
func ofSignatures() []refusal {
	unsigned := func(id string, is awsapigateway.ResponseType) refusal {
		return refusal{id, is, 401, "unauthenticated", "Authentication required",
			"Sign the request by Signature Version 4, for the service execute-api, with keys that are good now.", 0}
	}
	return []refusal{
		unsigned("unsigned", awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN()),
		unsigned("badly-signed", awsapigateway.ResponseType_INVALID_SIGNATURE()),
		unsigned("expired", awsapigateway.ResponseType_EXPIRED_TOKEN()),
		unsigned("unknown", awsapigateway.ResponseType_DEFAULT_4XX()),
		{"denied", awsapigateway.ResponseType_ACCESS_DENIED(), 403, "forbidden", "Forbidden",
			"No policy of the signer allows execute-api:Invoke on this call.", 0},
		unreadable("bad-body", awsapigateway.ResponseType_BAD_REQUEST_BODY()),
		unreadable("bad-query", awsapigateway.ResponseType_BAD_REQUEST_PARAMETERS()),
	}
}

func unreadable(id string, is awsapigateway.ResponseType) refusal {
	return refusal{id, is, 400, "invalid_value", "A value is not of the right form",
		"The request could not be read.", 0}
}

func (r refusal) add(api awsapigateway.RestApi, signed bool) {
	body, _ := json.Marshal(struct { // strings and a number cannot fail
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
		ID     string `json:"request_id"`
	}{"/" + Version + "/problems/" + r.code, r.title, r.status, r.code, r.detail, "$context.requestId"})
	headers := map[string]*string{
		"Content-Type": jsii.String("'application/problem+json'"),
		"X-Request-Id": jsii.String("context.requestId"),
	}
	if r.retryAfter > 0 {
		headers["Retry-After"] = jsii.String("'" + strconv.Itoa(r.retryAfter) + "'")
	}
	if r.status == 401 {
		scheme := "'Bearer'"
		if signed {
			scheme = "'AWS4-HMAC-SHA256'"
		}
		headers["WWW-Authenticate"] = jsii.String(scheme)
	}
	api.AddGatewayResponse(jsii.String("says-"+r.id), &awsapigateway.GatewayResponseOptions{
		Type: r.is, StatusCode: jsii.String(strconv.Itoa(r.status)), ResponseHeaders: &headers,
		Templates: &map[string]*string{"application/json": jsii.String(string(body))},
	})
}
