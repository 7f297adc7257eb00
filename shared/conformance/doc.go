// Package conformance holds the exercises that the memory twins and the AWS adapters must both
// pass, so that a stage tested on one means the same on the other.
//
//	conformance.Table(t, func(t *testing.T) store.Table { return … }, conformance.Knobs{})
//	conformance.Queue(t, …) · conformance.Timer(t, …) · conformance.Blob(t, …) · conformance.Secret(t, …)
//	conformance.TenantQueue(t, …)
//
// What always holds: an exercise knows only the adapter it is handed and the words of the core;
// exercises use keys of their own and may run side by side on one table. What an emulator does
// otherwise than AWS is named in [Knobs.Gaps], by the exercise's sentence and with the reason:
// the exercise is then expected to fail, and passing is reported, so that no gap outlives its
// cause. Nothing else may differ.
package conformance
