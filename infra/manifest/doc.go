// Package manifest writes the Kubernetes objects of the fleet as plain values: what a pod of
// workers may do and use, where it may run, and how many of them there are.
//
// What always holds: pods run as nobody, with nothing to write to and no privilege; a pool is
// spread over zones and hosts; a budget keeps most of it there; a node of long jobs is taken
// away by its end of life only, with time for what runs. The same values give the same text.
package manifest
