package function

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"punctual/shared/aws/session"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/tenant"
)

const (
	// OwnerAge is how old what is known of a function's owner may be.
	OwnerAge = time.Minute
)

const (
	most     = 1000 // owners known
	answerIn = 5 * time.Second
	callIn   = 15 * time.Second
)

// Functions reaches the account's Lambda functions. It is safe for concurrent use.
type Functions struct {
	lambda *lambda.Client               // for questions
	invoke *lambda.Client               // one try, as long as the context lets it run
	owners *cache.Cache[string, string] // by function
}

// New returns the functions of the account.
func New(cfg aws.Config) *Functions {
	return &Functions{
		lambda: lambda.NewFromConfig(session.Within(cfg, answerIn, nil)),
		invoke: lambda.NewFromConfig(session.Within(cfg, 0, nil),
			func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} }),
		owners: cache.New[string](cache.Options[string]{Age: OwnerAge, Most: most}),
	}
}

// Invoke runs a function once and waits for its answer, at most as long as the context lives.
// functionError is "" if it succeeded; else it says how it failed ("Unhandled" among others)
// and output holds what it said. err says that Lambda could not run it or did not answer.
func (f *Functions) Invoke(
	ctx context.Context, name string, input []byte,
) (output []byte, functionError string, err error) {
	out, err := f.invoke.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(name), Payload: input})
	if err != nil {
		return nil, "", session.Fault(err, "invoking function %s", name)
	}
	return out.Payload, aws.ToString(out.FunctionError), nil
}

// Allowed says whether the tenant may invoke the function, by its tag, as it stood at most
// OwnerAge ago. An absent function is a fault.NotFound.
func (f *Functions) Allowed(ctx context.Context, name string, t tenant.ID) (bool, error) {
	owner, err := f.owners.Get(ctx, name, func(ctx context.Context) (string, error) { return f.owner(ctx, name) })
	if err != nil {
		return false, err
	}
	return owner == contract.AnyTenant || owner != "" && owner == string(t), nil
}

// owner reads the tag; "" if there is none. Only the function itself has tags, so a version or
// an alias in the name is cut off: its ARN is what Lambda says it is.
func (f *Functions) owner(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	conf, err := f.lambda.GetFunctionConfiguration(ctx,
		&lambda.GetFunctionConfigurationInput{FunctionName: aws.String(name)})
	if err != nil {
		return "", session.Fault(err, "reading function %s", name)
	}
	out, err := f.lambda.ListTags(ctx,
		&lambda.ListTagsInput{Resource: aws.String(unqualified(aws.ToString(conf.FunctionArn)))})
	if err != nil {
		return "", session.Fault(err, "reading the tags of function %s", name)
	}
	return out.Tags[contract.TenantTag], nil
}

// unqualified cuts a version or an alias off a function's ARN:
// arn:aws:lambda:region:account:function:name[:qualifier].
func unqualified(arn string) string {
	const parts = 7
	if p := strings.Split(arn, ":"); len(p) > parts {
		return strings.Join(p[:parts], ":")
	}
	return arn
}
