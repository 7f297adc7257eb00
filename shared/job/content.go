package job

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/text"
)

// Contents is what a job holds that lists do not read. The row keeps a small payload itself; everything else
// is in sibling items or in an object. File content.go of package store keeps, copies, reads and forgets it.
type Contents struct {
	Payload []byte // compact JSON; nil for none
	Labels
	Literals *Literals // nil for none
}

// Labels is what a client writes on a job to find and explain it. It is kept and shown, and nothing is
// decided by it.
type Labels struct {
	Tags     string `json:"tags,omitempty"`     // a JSON object of strings; "" for none
	Metadata string `json:"metadata,omitempty"` // any JSON object; "" for none
}

// Labelled says what the labels' item of a job holds.
type Labelled struct {
	Tagged    bool // there is such an item
	Described bool // and it holds metadata
}

// Labelled is what a row with these labels says of them.
func (l Labels) Labelled() Labelled { return Labelled{l != Labels{}, l.Metadata != ""} }

// encode writes "1" for labels without metadata, as rows had them before there was any.
func (l *Labelled) encode() string {
	switch {
	case l.Described:
		return "2"
	case l.Tagged:
		return "1"
	}
	return ""
}

// decode reads what encode wrote.
func (l *Labelled) decode(s string) error {
	l.Tagged, l.Described = s != "", s == "2"
	return nil
}

// PutLabels writes the labels' item of the job, or deletes it when there are no labels.
func (r Row) PutLabels(l Labels) item.Write {
	w := r.PutContent(TagsContent, l.Tags)
	if l == (Labels{}) {
		w.Put, w.Delete = nil, true
	}
	if l.Metadata != "" {
		w.Put["metadata"] = l.Metadata
	}
	return w
}

// ParseLabels decodes what PutLabels wrote.
func ParseLabels(i item.Item) Labels { return Labels{i.Str("body"), i.Str("metadata")} }

// Literals is what a caller declared to be no secret, though it looks like one. It is recorded for people
// to read, and is not copied with a job: it speaks of one request.
type Literals struct {
	Pointers []string `json:"pointers"` // JSON pointers below the job
	By       string   `json:"by"`
}

// Same says that the two declare the same, by whichever caller.
func (l *Literals) Same(as *Literals) bool {
	return l == as || l != nil && as != nil && slices.Equal(l.Pointers, as.Pointers)
}

// Hold makes a row that is about to be accepted one of a job with these contents. It decides where the
// payload is kept, by what else the row holds.
func (r *Row) Hold(c Contents) {
	r.Labelled = c.Labels.Labelled()
	if c.Payload != nil {
		r.SetPayload(PayloadStorage(r, c.Payload))
	}
}

// PutContents writes what of the contents is in sibling items. The row says where its payload lies.
func (r Row) PutContents(c Contents) []item.Write {
	var writes []item.Write
	if r.PayloadIn == InItem && c.Payload != nil {
		writes = append(writes, r.PutContent(PayloadContent(r.PayloadVer), string(c.Payload)))
	}
	if c.Labels != (Labels{}) {
		writes = append(writes, r.PutLabels(c.Labels))
	}
	if c.Literals != nil {
		writes = append(writes, r.PutContent(LiteralsContent, string(text.MustJSON(c.Literals))))
	}
	return writes
}

// contentKept outlives every row it belongs to. Contents go with the row when the table
// lets that go; this is for those whose row was never written.
const contentKept = contract.MaxAhead + contract.DeadKept

// PutContent writes a sibling item of the job: anything that is not for lists to read. That of a
// job which has ended expires with its row.
func (r Row) PutContent(name, body string) item.Write {
	ref := r.ContentRef(name)
	until := r.CreatedAt.Add(contentKept)
	if !r.ExpiresAt.IsZero() {
		until = r.ExpiresAt
	}
	return item.Write{Ref: ref, Name: "content." + name, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK, "body": body,
		contract.AttrExpiresAt: until.Unix(),
	}}
}

// Forgotten is what remains to be done once the table has let the row go: a message that asks to forget its
// contents, false when there can be none. What a first attempt left when it ended the job expires by itself.
func Forgotten(r Row) (message.Dispatch, bool) {
	if r.PayloadIn == InRow && r.ResultIn == InRow && !r.Tagged && r.Attempt <= 1 {
		return message.Dispatch{}, false
	}
	blob := int64(0)
	if r.PayloadIn == InBlob {
		blob = r.PayloadVer
	}
	return message.Ask(message.Verb{Forget: &message.Forget{
		Tenant: string(r.Tenant), JobID: string(r.ID), Payload: blob, Result: r.ResultRef,
	}}), true
}

// PutAttempt writes an ended attempt to a sibling item of its own.
func (r Row) PutAttempt(a Attempt) item.Write {
	name := AttemptContent(a.Attempt)
	if a.Start > 0 {
		name += "#" + strconv.FormatInt(a.Start, 10)
	}
	return r.PutContent(name, string(text.MustJSON(a)))
}

// PutStarts writes entries of starts that ended without an outcome, for a row that ends without another.
func (r Row) PutStarts(starts []Attempt) []item.Write {
	writes := make([]item.Write, len(starts))
	for n, a := range starts {
		writes[n] = r.PutAttempt(a)
	}
	return writes
}

// PayloadStorage decides where a payload of that JSON is kept in a row like base.
// It leaves space in the row for a result and for what settling adds.
func PayloadStorage(base *Row, payload []byte) Payload {
	p := Payload{Size: int64(len(payload))}
	switch {
	case len(payload) <= contract.MaxInlinePayload &&
		base.sizeWith(payload) <= contract.MaxRow-contract.MaxInlineResult-settleBytes:
		p.Inline = string(payload)
	case len(payload) <= contract.MaxItem:
		p.In = InItem
	default:
		p.In = InBlob
	}
	if p.In != InRow {
		p.Number = ContentNumber(base.Version, string(payload))
	}
	return p
}

// ContentNumber numbers contents that are kept outside of a row, by the row's version and by what they hold. Contents
// are written before the row that refers to them; of two writers only one gets its row, and the other one must not
// have replaced the winner's contents. Content can be what identifies the contents as well, such as their hash.
func ContentNumber(version int64, content string) int64 {
	sum := sha256.Sum256([]byte(strconv.FormatInt(version, 10) + "\x00" + content))
	const bits = 52 // exact as a number of JSON
	return int64(binary.BigEndian.Uint64(sum[:8])>>(64-bits)) | 1<<(bits-1)
}

// settleBytes is what a successful first attempt adds to the row.
const settleBytes = 200

// SetPayload puts a placed payload into a row that is about to be accepted.
func (r *Row) SetPayload(p Payload) {
	r.Payload, r.PayloadIn, r.PayloadSize, r.PayloadVer = p.Inline, p.In, p.Size, p.Number
}

// BlobKey is the object of a payload in the blob store; tenants are apart by prefix.
func (k Key) BlobKey(content string) string {
	return contract.JobBlobs + string(k.Tenant) + "/" + string(k.ID) + "/" + content
}

// IdempotencyKey is the item that remembers a client's key. It is stored under a hash, so that
// any printable key is a legal one.
type IdempotencyKey struct {
	JobID     ID
	BodyHash  string
	ExpiresAt time.Time
}
