// Command lambda is the main of the function that makes the index of jobs anew.
package main

import (
	"time"

	"punctual/functions/entry"
	"punctual/functions/search"
	"punctual/shared/aws/table"
	"punctual/shared/store"
)

// A call goes on for so long: the AWS CLI waits for a minute. A job takes three write units, and a table that was made
// today takes 4,000 a second.
const (
	callTime   = 30 * time.Second
	itemSecond = 1000
)

func main() {
	s := entry.New("reindex")
	tables := table.New(s.Config, s.Env.TableName)
	entry.Start(s, (&search.Rebuild{
		Stage: search.New(search.Deps{Base: s.Base(), Store: s.Store(), Index: store.NewSearchTable(nil, tables)}),
		Jobs:  tables,
		Rate:  itemSecond,
		Time:  callTime,
	}).Handle)
}
