// Package contract holds every number and name that two packages must agree on, each once, with its
// unit and its reason. Code and infra import it; nothing is computed here.
package contract
