package spec

import (
	"fmt"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/text"
)

// Fields of a unique key.
var (
	uniqueKey = field.Text("key", "Key that one open job of the tenant holds at a time; 1 to {=unique_key} printable "+
		"characters.", field.All(field.Characters(1, contract.MaxUniqueKey), printed), readUniqueKey).
		Example("invoice-42").Required()
	uniqueUntil = field.Word[job.Until]("until", "How long the job holds the key: done (default), until it has a "+
		"final status, or started, until its first attempt starts.", rest.CodeInvalidValue, job.Untils)
	onConflict = field.Word[job.OnConflict]("on_conflict", "Treatment of the new job while another one holds the key. "+
		"return (default) answers 200 with the other job, reject refuses the request with not_unique, and replace "+
		"gives the other job every field of the new one but task, unique and after, if no attempt of it has been "+
		"claimed, and answers 200; otherwise it refuses as reject does.", rest.CodeInvalidValue, job.OnConflicts)

	uniqueRequest = field.NewObject("UniqueRequest", "Key that one open job of the tenant holds at a time.", uniqueKey,
		uniqueUntil, onConflict)

	// Unique is the unique key of a job, a batch item and a schedule's job.
	Unique = field.Nested("unique", "Key that one open job of the tenant holds at a time. Default: none.",
		uniqueRequest, readUnique)
)

func readUnique(r *rest.Reader, v rest.Value) (u job.Unique, ok bool) {
	before := len(r.Wrong)
	f := uniqueRequest.Read(r, v)
	if !uniqueKey.Into(r, f, &u.Key) && f != nil {
		r.Missing(v.Pointer, uniqueKey.Name())
	}
	u.Until, u.OnConflict = job.UntilDone, job.ConflictReturn
	uniqueUntil.Into(r, f, &u.Until)
	onConflict.Into(r, f, &u.OnConflict)
	return u, len(r.Wrong) == before
}

func readUniqueKey(r *rest.Reader, v rest.Value) (string, bool) {
	key, ok := r.Text(v)
	switch {
	case !ok:
	case !job.IsUniqueKey(key):
		r.Violation(v.Pointer, rest.CodeInvalidValue,
			fmt.Sprintf("1 to %d printable characters", contract.MaxUniqueKey), "this is not a unique key")
	case text.TokenShaped(key):
		r.Violation(v.Pointer, rest.CodeSecretInPayload, "", "this looks like a secret, and would be kept in the clear")
	default:
		return key, true
	}
	return "", false
}

// UniqueView shows a unique key.
type UniqueView struct {
	Key        string         `json:"key" doc:"Key that one open job of the tenant holds at a time"`
	Until      job.Until      `json:"until" enum:"done,started" doc:"How long the job holds the key: until it has a final status, or until its first attempt starts"`
	OnConflict job.OnConflict `json:"on_conflict" enum:"return,reject,replace" doc:"Treatment of the new job while another one holds the key"`
}

// ViewUnique shows a unique key; nil is none.
func ViewUnique(u job.Unique) *UniqueView {
	if u.Key == "" {
		return nil
	}
	return &UniqueView{u.Key, u.Until, u.OnConflict}
}
