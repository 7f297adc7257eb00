package quota

import (
	"context"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
)

// account asks AWS.
type account struct {
	cfg    aws.Config
	quotas *servicequotas.Client
	lambda *lambda.Client
}

// Account is the account of the credentials at hand, in a region.
func Account(ctx context.Context, region string) (Source, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("finding credentials: %w", err)
	}
	return account{cfg, servicequotas.NewFromConfig(cfg), lambda.NewFromConfig(cfg)}, nil
}

// Code looks through the defaults: they list all quotas of a service, changed or not.
func (a account) Code(ctx context.Context, service string, name *regexp.Regexp) (string, error) {
	pages := servicequotas.NewListAWSDefaultServiceQuotasPaginator(a.quotas,
		&servicequotas.ListAWSDefaultServiceQuotasInput{ServiceCode: aws.String(service)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("listing the quotas of %s: %w", service, err)
		}
		for _, q := range page.Quotas {
			if name.MatchString(aws.ToString(q.QuotaName)) {
				return aws.ToString(q.QuotaCode), nil
			}
		}
	}
	return "", fmt.Errorf("no quota of %s is named like %s", service, name)
}

// Value is what applies to the account, or what applies to all where it has nothing of its own.
func (a account) Value(ctx context.Context, service, code string) (float64, error) {
	if code == concurrency { // what new accounts are allowed is known to Lambda alone
		out, err := a.lambda.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
		if err != nil {
			return 0, fmt.Errorf("reading how many functions may run at once: %w", err)
		}
		if out.AccountLimit != nil {
			return float64(out.AccountLimit.ConcurrentExecutions), nil
		}
	}
	out, err := a.quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{
		ServiceCode: aws.String(service), QuotaCode: aws.String(code)})
	if err == nil && out.Quota != nil {
		return aws.ToFloat64(out.Quota.Value), nil
	}
	byDefault, err := a.quotas.GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{
		ServiceCode: aws.String(service), QuotaCode: aws.String(code)})
	if err != nil || byDefault.Quota == nil {
		return 0, fmt.Errorf("reading the quota %s of %s: %w", code, service, err)
	}
	return aws.ToFloat64(byDefault.Quota.Value), nil
}
