package job

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// ID is a ULID: 48 bits of milliseconds and 80 bits that make it unique, as 26 characters
// whose order is the order of time. We write it ourselves because core imports no vendor and
// because half of our ids are derived, not random.
type ID string

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns the id of that instant with the given entropy.
func NewID(at time.Time, entropy [10]byte) ID {
	hi := uint64(at.UnixMilli())<<16 | uint64(binary.BigEndian.Uint16(entropy[:2]))
	lo := binary.BigEndian.Uint64(entropy[2:])
	var out [26]byte
	for i := 25; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return ID(out[:])
}

// DeterministicID returns the id that those parts always give at that instant. Parts are joined
// with their lengths, so that ("a", "bc") and ("ab", "c") differ.
func DeterministicID(at time.Time, parts ...string) ID {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p)) // never fails
	}
	return NewID(at, [10]byte(h.Sum(nil)[:10]))
}

// ParseID returns s as an ID if it is spelled as one, in upper case.
func ParseID(s string) (ID, error) {
	if len(s) != 26 || s[0] > '7' {
		return "", fault.New(fault.Invalid, nil, "reading a job id: want 26 characters of a ULID")
	}
	for i := range len(s) {
		if !strings.Contains(crockford, s[i:i+1]) {
			return "", fault.New(fault.Invalid, nil, "reading a job id: %q is not a ULID character", s[i])
		}
	}
	return ID(s), nil
}

// At is the instant in the id, to the millisecond.
func (id ID) At() time.Time {
	var ms int64
	for i := range 10 {
		ms = ms<<5 | int64(strings.IndexByte(crockford, id[i]))
	}
	return time.UnixMilli(ms).UTC()
}

// Key names one job of one tenant. Another tenant's key cannot be built from an id alone.
type Key struct {
	Tenant tenant.ID
	ID     ID
}

// partition spreads a tenant's jobs over contract.Partitions partitions.
func (k Key) partition() string {
	h := fnv.New32a()
	h.Write([]byte(k.ID)) // never fails
	return PartitionKey(k.Tenant, int(h.Sum32()%contract.Partitions))
}

// PartitionKey is the partition p of a tenant's jobs, 0 ≤ p < contract.Partitions.
func PartitionKey(t tenant.ID, p int) string { return string(t) + "#" + strconv.Itoa(p) }

// Ref is where the row is.
func (k Key) Ref() item.Ref {
	return item.Ref{Table: contract.Jobs, PK: k.partition(), SK: string(k.ID)}
}

// ClaimRef is where the claim is.
func (k Key) ClaimRef() item.Ref {
	return item.Ref{Table: contract.Claims, PK: string(k.Tenant) + "#" + string(k.ID)}
}

// ContentRef is where a sibling item of that name is: "payload#3", "result", "tags", "attempt#0007".
func (k Key) ContentRef(name string) item.Ref {
	return item.Ref{Table: contract.Jobs, PK: "blob#" + k.partition(), SK: string(k.ID) + "#" + name}
}

// KeyOf reads the key back from a row's or an index entry's attributes.
func KeyOf(i item.Item) (Key, error) {
	t, _, ok := strings.Cut(i.Str(contract.AttrPK), "#")
	id, err := ParseID(i.Str(contract.AttrJobID))
	if !ok || t == "" || err != nil {
		return Key{}, fault.New(fault.Undecodable, err, "reading the key of a job item")
	}
	return Key{Tenant: tenant.ID(t), ID: id}, nil
}
