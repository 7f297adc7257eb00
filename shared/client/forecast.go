package client

import (
	"context"
	"time"

	"punctual/shared/client/rest"
)

// Forecast returns the starts that are expected from a time until another, up to seven days ahead, in steps of whole
// minutes that divide a day, such as 5m, 1h and 1d.
func (c *Client) Forecast(ctx context.Context, from, to time.Time, step string) (rest.ForecastView, error) {
	return c.ForecastBy(ctx, rest.GetForecastParams{From: &from, To: &to, Step: &step})
}

// ForecastBy is Forecast with parameters that may be absent: from now, for a day, by the hour.
func (c *Client) ForecastBy(ctx context.Context, p rest.GetForecastParams) (rest.ForecastView, error) {
	return Call[rest.ForecastView](ctx, c, rest.GetForecast, Request{Params: p})
}

// CalmMinutes returns the minutes of the next seven days with the fewest expected starts, fewest first.
func (c *Client) CalmMinutes(ctx context.Context, p rest.ListCalmMinutesParams) ([]rest.CalmView, error) {
	found, err := Call[rest.CalmAnswer](ctx, c, rest.ListCalmMinutes, Request{Params: p})
	return found.Items, err
}
