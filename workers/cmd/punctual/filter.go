package main

import "time"

// bound is a bound of a list in time: the field of the request, and the flag that was typed for it.
type bound struct {
	field **time.Time
	typed typedTime
}

// times sets the fields of the bounds that were typed.
func (s *shell) times(bounds ...bound) error {
	var now time.Time // of the API, which is asked once, and only if a bound was typed
	for _, b := range bounds {
		if b.typed.typed == "" {
			continue
		}
		if now.IsZero() {
			now = s.now()
		}
		at, err := b.typed.on(now)
		if err != nil {
			return usage{err}
		}
		*b.field = &at
	}
	return nil
}

// tagFilter is what a list takes as filters by tags.
func tagFilter(tags map[string]string) *map[string]string {
	if len(tags) == 0 {
		return nil
	}
	named := map[string]string{}
	for name, value := range tags {
		named["tag."+name] = value
	}
	return &named
}
