// Package conformance holds the exercises that the in-memory implementations and the AWS adapters must both
// pass, so that a stage tested on one behaves the same on the other.
//
//	conformance.Table(t, func(t *testing.T) store.Table { return … }, conformance.Knobs{})
//	conformance.Queue(t, …) · conformance.Timer(t, …) · conformance.Blob(t, …) · conformance.Secret(t, …)
//	conformance.TenantQueue(t, …)
//
// What always holds: an exercise knows only the adapter that it is handed and the types of the core;
// exercises use unique keys and may run side by side on one table. Where an emulator differs from
// AWS, [Knobs.Gaps] names the exercise and the reason. The exercise must then fail; if it passes, the
// suite reports it, so that no gap outlives its cause. Nothing else may differ.
package conformance
