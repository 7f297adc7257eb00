package model

// Mapped nodes and single jobs that come after others are searched apart from runs, each with a small state of its own.

// small is a state that knows its successors and its violations.
type small[S any] interface {
	comparable
	// follow calls each with every next state. free says that the step may never happen: a crash.
	follow(each func(what string, free bool, to S))
	// wrong says what this state violates, "" for nothing; rests says that nothing follows by itself.
	wrong(rests bool) string
}

// reach visits all states from the first one onwards and returns the steps to the nearest that is wrong.
func reach[S small[S]](first S) (states int, trace []string) {
	type visit struct {
		from S
		what string
	}
	came := map[S]visit{first: {}}
	queue := []S{first}
	to := func(s S, last string) []string {
		steps := []string{last}
		for s != first {
			v := came[s]
			steps = append([]string{v.what}, steps...)
			s = v.from
		}
		return steps
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		rests := true
		s.follow(func(what string, free bool, next S) {
			rests = rests && (free || next == s)
			if _, ok := came[next]; !ok {
				came[next] = visit{s, what}
				queue = append(queue, next)
			}
		})
		if bad := s.wrong(rests); bad != "" {
			return len(came), to(s, bad)
		}
	}
	return len(came), nil
}
