// Command lambda is the main of the second reader of the jobs table's stream.
package main

import (
	"punctual/functions/changes"
	"punctual/functions/entry"
	"punctual/functions/events"
	"punctual/functions/search"
	"punctual/functions/stats"
)

func main() {
	s := entry.New("changes")
	entry.Start(s, changes.New(changes.Deps{
		Base:      s.Base(),
		Followers: followers(s),
		Counts:    stats.New(stats.Deps{Base: s.Base(), Store: s.Store(), UsageTags: s.Env.UsageTags}),
		Queue:     s.Queues(),
	}).Handle)
}

// followers are the stages that follow the jobs table, in the order in which they get a change.
func followers(s entry.Stage) []changes.Follower {
	return []changes.Follower{
		events.New(events.Deps{Base: s.Base(), Store: s.Store(), Queue: s.Queues()}).Changes,
		search.New(search.Deps{Base: s.Base(), Store: s.Store(), Index: s.Search()}).Changes,
	}
}
