// Package account is for a person with an AWS account: it deploys dev under a prefix of its own, uses
// it as a user would, measures how late jobs start, looks at each fact that only AWS can show, and
// deletes what it deployed. `make account` runs it, and shared/docs/deploying.md says how.
//
// What always holds: it works in no account but the one that it is given, and it deletes what it made
// when a step fails as well. Each fact has one line in the report: what AWS does, and whether that is
// what the code needs. A line that nothing here can check, such as a price, says where to look.
//
// How it fails: a fact that is otherwise than the code needs fails the run, and the rest goes on.
// Over an emulator the facts are read, too, and none is checked.
package account
