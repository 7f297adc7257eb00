// Package entry is what the mains of the functions share: the environment, a logger, metrics, newer time zone rules,
// the adapters of AWS, and the start of the handler. A main names its stage and hands it what it needs:
//
//	s := entry.New("sweeper")
//	entry.Start(s, sweeper.New(sweeper.Deps{Base: s.Base(), Store: s.Store(), Queue: s.Queues(), …}).Handle)
//
// It decides nothing, as no test reaches it, and it calls nothing of AWS: an adapter is made where a main asks for it,
// and what a function may call is granted by the infrastructure alone. What is missing in the environment ends the
// process with its name. The authorizer calls nothing of AWS and has a main of its own.
package entry
