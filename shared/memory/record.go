package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"bufio"

	"punctual/shared/text"
)

// A record is one line: a checksum, its number in the file, the length of its body, and the body, a list of facts
// in JSON.
//
//	1c291ca3 2 79 [{"row":{…}}]
//
// The checksum covers all that follows it. The number shows a line that is missing, doubled or moved, and the
// length distinguishes the unfinished end of a write from damage. Format 1 has neither: a checksum and the body.

// keptFormat is the number of the format that is written here. Format 1 is still read; any other is refused.
const keptFormat = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns the text of record number n.
func line(n int, facts []kept) ([]byte, error) {
	body, err := text.JSON(facts)
	if err != nil {
		return nil, err
	}
	const header = 40 // at most
	out := append(make([]byte, 0, header+len(body)), "00000000 "...)
	out = append(strconv.AppendInt(out, int64(n), 10), ' ')
	out = append(strconv.AppendInt(out, int64(len(body)), 10), ' ')
	out = append(out, body...)
	_ = fmt.Appendf(out[:0], "%08x", crc32.Checksum(out[sumLength+1:], castagnoli))
	return append(out, '\n'), nil
}

// sumLength is the length of a checksum in hexadecimal digits.
const sumLength = 8

// recordRead is a line of a file as it was read.
type recordRead struct {
	at, size int64
	format   int
	number   int // 0 in format 1
	facts    []kept
	torn     bool  // the line is the beginning of a record, at the end of the file
	err      error // why it is no record; nil if it is one, or torn
}

var (
	errSum    = errors.New("its checksum does not match")
	errHeader = errors.New("it does not begin as a record does")
	errEnd    = errors.New("it does not end as a record does")
)

// header splits a line without its line feed. In format 1 number and length are 0.
func header(entry []byte) (sum uint32, summed []byte, number, length int, body []byte, err error) {
	head, summed, ok := bytes.Cut(entry, []byte{' '})
	n, err := strconv.ParseUint(string(head), 16, 32)
	if !ok || err != nil || len(head) != sumLength || bytes.ContainsAny(head, "ABCDEF") {
		return 0, nil, 0, 0, nil, errHeader
	}
	sum = uint32(n)
	if len(summed) > 0 && summed[0] == '[' {
		return sum, summed, 0, 0, summed, nil
	}
	first, rest, ok := bytes.Cut(summed, []byte{' '})
	second, body, okToo := bytes.Cut(rest, []byte{' '})
	number, err = strconv.Atoi(string(first))
	length, errToo := strconv.Atoi(string(second))
	if !ok || !okToo || err != nil || errToo != nil || number < 1 || length < 0 {
		return 0, nil, 0, 0, nil, errHeader
	}
	return sum, summed, number, length, body, nil
}

// recordOf reads one line, whose line feed it may lack at the end of a file.
func recordOf(entry []byte) recordRead {
	whole, ended := bytes.CutSuffix(entry, []byte{'\n'})
	sum, summed, number, _, body, err := header(whole)
	r := recordRead{size: int64(len(entry)), number: number, format: 1}
	if number > 0 {
		r.format = 2
	}
	switch {
	case !ended:
		if r.torn = cutOff(entry); !r.torn {
			r.err = errEnd
		}
	case err != nil:
		r.err = err
	case crc32.Checksum(summed, castagnoli) != sum:
		r.err = errSum
	default:
		r.err = json.Unmarshal(body, &r.facts)
	}
	return r
}

// cutOff reports whether a line without a line feed can be the beginning of a record, cut off by the end of the
// process or the machine. A record that is there in full, but for its line feed, counts.
func cutOff(entry []byte) bool {
	if bytes.ContainsFunc(entry, func(c rune) bool { return c < ' ' }) { // JSON escapes those
		return false
	}
	sum, summed, number, length, body, err := header(entry)
	switch {
	case err != nil:
		return beginsHeader(entry)
	case number > 0:
		return len(body) <= length
	}
	// Format 1: a record whose line feed was changed into another byte is damaged, not torn.
	return crc32.Checksum(summed[:len(summed)-1], castagnoli) != sum
}

// beginsHeader reports whether a line ends within what precedes the body of a record.
func beginsHeader(entry []byte) bool {
	sum, rest, _ := bytes.Cut(entry, []byte{' '})
	if len(sum) > sumLength || len(sum) < sumLength && len(sum) != len(entry) {
		return false
	}
	in := func(some []byte, digits string) bool { return len(bytes.Trim(some, digits)) == 0 }
	first, second, _ := bytes.Cut(rest, []byte{' '})
	return in(sum, "0123456789abcdef") && in(first, "0123456789") && in(second, "0123456789")
}

// records calls each for every line of a file until it returns an error.
func records(f io.Reader, each func(recordRead) error) error {
	at := int64(0)
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		entry, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(entry) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading on at byte %d: %w", at, err)
		}
		rec := recordOf(entry)
		rec.at = at
		if err := each(rec); err != nil {
			return err
		}
		at += rec.size
	}
}
