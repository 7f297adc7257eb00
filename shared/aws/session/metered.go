package session

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"punctual/shared/fault"
	"punctual/shared/telemetry"
)

// Metered returns cfg for clients whose throttled requests are counted by service, even where a retry
// succeeds. These are the first sign that a quota is near, and only the adapters see them. A nil meter
// counts nothing.
func Metered(cfg aws.Config, m *telemetry.Meter) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("CountThrottles", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleFinalize(ctx, in)
			if err != nil && Kind(err) == fault.Throttled {
				m.Count(telemetry.Throttles, 1, telemetry.Dim{
					Key: "service", Value: strings.ToLower(awsmiddleware.GetServiceID(ctx)),
				})
			}
			return out, metadata, err
		}), "Retry", middleware.After)
	})
	return cfg
}
