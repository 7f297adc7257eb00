// Package changes is the second reader of the jobs table's stream. It hands each batch of changes to the stages that
// follow the table, one after the other, and has what became of jobs counted by windows of time. DynamoDB bears two
// readers of a shard: the stage that fires jobs is the first, and all others share this one.
//
// What always holds: a stage gets a change only after the stages before it are done with it, or have quarantined it, so
// that none is left out. A change that can never be handled is quarantined and holds up nothing; one that failed for
// now is delivered once more, with the later ones of its shard, until it is handled or the stream no longer has it.
//
// How it fails: changes may come twice, and all stages bear that. Counts are close only: those of a batch that failed
// may be counted twice, or not at all.
package changes
