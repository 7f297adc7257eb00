// Package dags serves dags and their runs: definitions, runs, nodes and the operations on them.
package dags
