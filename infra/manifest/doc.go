// Package manifest writes the Kubernetes objects of the fleet as plain values: what a pod of
// workers may do and use, where it may run, and how many of them there are.
//
// What always holds: pods run as the user nonroot, without privileges and with a read-only file system, and accept no
// connections. A pool is spread over zones and hosts, and a disruption budget keeps most of its pods running. A node of
// long jobs is never replaced by a cheaper one, and no node ends before its pods have drained. The same values give the
// same text.
//
// How it fails: Kubernetes drops or refuses a field that it does not know, at deploy time only.
// So tests decode every object into Kubernetes' own types, validate custom resources by their
// schemas, and run the scaler's formula (testdata).
package manifest
