package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"punctual/shared/client/rest"
)

type audit struct {
	Ls listAudit `cmd:"" help:"List who changed what, newest first."`
}

type listAudit struct {
	Actor    string    `help:"Subject of the caller whose changes are shown."`
	Action   string    `help:"Action that is shown, such as schedule.put."`
	Resource string    `help:"Resource whose changes are shown, such as schedule/morning, with those of its parts."`
	After    typedTime `help:"Earliest time of the changes: today's 11:26, or a date with a zone."`
	Before   typedTime `help:"Time before which the changes were made: today's 11:26, or a date with a zone."`
	Limit    int       `default:"20" help:"Maximum number of entries; 0 lists all."`
}

// Run lists the entries of the audit.
func (c listAudit) Run(s *shell) error {
	params := rest.ListAuditParams{Actor: ptr(c.Actor), Action: ptr(rest.ListAuditParamsAction(c.Action)),
		Resource: ptr(c.Resource)}
	if err := s.times(bound{&params.After, c.After}, bound{&params.Before, c.Before}); err != nil {
		return err
	}
	return list(s, s.client.Audit(s.ctx, &params), c.Limit, func(e rest.AuditView) string { return e.RequestID },
		column[rest.AuditView]{"AT", func(e rest.AuditView) string { return instant(&e.At) }},
		column[rest.AuditView]{"ACTION", func(e rest.AuditView) string { return e.Action }},
		column[rest.AuditView]{"RESOURCE", func(e rest.AuditView) string { return e.Resource }},
		column[rest.AuditView]{"ACTOR", func(e rest.AuditView) string { return e.Actor.Sub }},
		column[rest.AuditView]{"REASON AND CHANGES", whyAndWhat})
}

// whyAndWhat is the reason of a change and what changed, in one cell: two would leave no room for what names them.
func whyAndWhat(e rest.AuditView) string {
	if changes := changesInWords(e); e.Reason == "" || changes != "" {
		return strings.TrimPrefix(e.Reason+"; "+changes, "; ")
	}
	return e.Reason
}

// changesInWords lists what changed in one line, such as "/job/priority low → high".
func changesInWords(e rest.AuditView) string {
	words := make([]string, 0, len(e.Changes)+1)
	for _, c := range e.Changes {
		words = append(words, changeInWords(c))
	}
	if n := e.MoreChanges; n != nil {
		words = append(words, fmt.Sprintf("%d more", *n))
	}
	return strings.Join(words, ", ")
}

func changeInWords(c rest.AuditChange) string {
	switch from, to := inWords(c.From), inWords(c.To); {
	case from != "" && to != "":
		return c.Pointer + " " + from + " → " + to
	case from != "":
		return c.Pointer + " " + from + " removed"
	case to != "":
		return c.Pointer + " " + to
	}
	return c.Pointer // the values are left out
}

// inWords returns a value as JSON, a text without its quotes; "" for none.
func inWords(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(encoded)
}
