package store

import (
	"context"

	"punctual/shared/item"
)

// Forecast implements Forecasts.
func (s *Store) Forecast(ctx context.Context) (string, error) {
	i, err := s.table.Get(ctx, system("forecast", "all"))
	return i.Str("body"), err
}

// SetForecast implements Forecasts.
func (s *Store) SetForecast(ctx context.Context, text string) error {
	return s.Put(ctx,
		item.Write{Ref: system("forecast", "all"), Name: WriteForecastSet, Set: map[string]any{"body": text}})
}
