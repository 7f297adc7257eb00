package main

import "time"

// bound is a bound of a list in time: the field of the request, and the flag that was typed for it.
type bound struct {
	field **time.Time
	typed typedTime
}

// times sets the fields of the bounds that were typed.
func (s *shell) times(bounds ...bound) error {
	for _, b := range bounds {
		at, err := b.typed.on(s.here(b.typed))
		if err != nil {
			return err
		}
		*b.field = ptr(at)
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
