package stats

import (
	"encoding/json"
	"fmt"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// State encodes the sum for the next call of the same window of an event source: what is added to each span, by the
// partition and the key of the span.
func (s Sum) State() map[string]string {
	state := map[string]string{}
	for series, minutes := range s {
		for at, adds := range spans(minutes) {
			state[Partition(series)+" "+SpanKey(at)] = string(text.MustJSON(adds))
		}
	}
	return state
}

// AddState adds what State encoded. An error leaves out what cannot be read.
func (s *Sum) AddState(state map[string]string) (err error) {
	for name, body := range state {
		partition, key, _ := strings.Cut(name, " ")
		parts := strings.SplitN(partition, "#", 3)
		var adds map[string]int64
		if len(parts) != 3 || json.Unmarshal([]byte(body), &adds) != nil {
			err = fmt.Errorf("the counts of %q cannot be read", name)
			continue
		}
		span := item.Item{contract.AttrSK: key}
		for attr, n := range adds {
			span[attr] = n
		}
		minutes, unreadable := Minutes(span)
		if unreadable != nil {
			err = unreadable
			continue
		}
		for minute, c := range minutes {
			s.Add(Series{tenant.ID(parts[1]), parts[2]}, minute, c)
		}
	}
	return err
}
