// Package stagetest is the set-up that the tests of the stages and of the engine share: the in-memory implementations
// in a bubble of virtual time, and the few verbs with which a test puts jobs there, plays a worker or an operator,
// makes calls fail, and reads the result.
//
//	stagetest.Bubble(t, "fires a lost job again", memory.Options{}, func(b *stagetest.Bench) {
//		r := b.Put(jobtest.Row(1, time.Now(), time.Now()))
//		…
//		b.RequireFired(r)
//	})
//
// The tests of a stage have a type bench of their own. It embeds a Bench and adds the stage and the verbs that only
// this stage has; what two stages need is a verb of Bench.
//
// What always holds: each bubble has a world of its own, so tests run in parallel; time moves only
// while the test sleeps; names of test writes begin with "test.", so that faults can distinguish them.
//
// How it fails: a verb that cannot do its part ends the test at the line that called it.
package stagetest
