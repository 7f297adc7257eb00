// Package stagetest is the set-up that the tests of the stages and of the engine share: the memory
// in-memory implementations in a bubble of virtual time, and the few verbs with which a test puts jobs there, plays a
// worker or an operator, and reads what became of it.
//
//	stagetest.Bubble(t, "fires a lost job again", memory.Options{}, func(s *stagetest.Setup) {
//		r := s.Put(jobtest.Row(1, time.Now(), time.Now()))
//		…
//		s.RequireFired(r)
//	})
//
// What always holds: each bubble has a world of its own, so tests run in parallel; time moves only
// while the test sleeps; names of test writes begin with "test.", so that faults can distinguish them.
//
// How it fails: a verb that cannot do its part ends the test at the line that called it.
package stagetest
