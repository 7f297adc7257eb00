// Package store speaks of jobs, claims, tasks and pauses to a table that only knows items.
//
// It adds no decisions: it encodes what package job decided, reads back what is there,
// and names what is missing or unreadable. The same code runs over DynamoDB and over the
// in-memory implementation, so a stage tested on one means the same on the other. See decision 0002.
//
// What always holds: reads that decide are strongly consistent; an item that cannot be read
// is an error of kind fault.Undecodable for that item alone; an item past its expires_at is
// absent, though the table may keep it for days.
package store
