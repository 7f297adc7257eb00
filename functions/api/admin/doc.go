// Package admin serves tasks, pauses of everything or of one task, and what concerns the whole deployment.
package admin
