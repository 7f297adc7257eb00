package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"strconv"
)

// A record is one line: a checksum, its number in the file, the length of its body, and the body, a list of facts.
//
//	1c291ca3 2 79 r4:jobs…
//
// The checksum covers all that follows it. The number shows a line that is missing, doubled or moved, and the
// length distinguishes the unfinished end of a write from damage. In format 2 every body is JSON. A record of format 1
// has neither a number nor a length, and its body is JSON, too.

// keptFormat is the number of the format that is written here. Those before it are still read; any other is refused.
const keptFormat = 3

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLine appends record number n with a body to out.
func appendLine(out []byte, n int, body []byte) []byte {
	at := len(out)
	out = append(strconv.AppendInt(append(out, "00000000 "...), int64(n), 10), ' ')
	out = append(strconv.AppendInt(out, int64(len(body)), 10), ' ')
	out = append(out, body...)
	_ = fmt.Appendf(out[:at], "%08x", crc32.Checksum(out[at+sumLength+1:], castagnoli))
	return append(out, '\n')
}

// sumLength is the length of a checksum in hexadecimal digits.
const sumLength = 8

// recordRead is a line of a file as it was read.
type recordRead struct {
	at, size int64
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
func (d *decoder) record(entry []byte) recordRead {
	whole, ended := bytes.CutSuffix(entry, []byte{'\n'})
	sum, summed, number, _, body, err := header(whole)
	r := recordRead{size: int64(len(entry)), number: number}
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
		r.facts, r.err = d.decode(body)
	}
	return r
}

// cutOff reports whether a line without a line feed can be the beginning of a record, cut off by the end of the
// process or the machine. A record that is there in full, but for its line feed, counts.
func cutOff(entry []byte) bool {
	if bytes.ContainsFunc(entry, func(c rune) bool { return c < ' ' }) { // no body has those
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

// batchSize is how many bytes of a file, about, are decoded at a time.
const batchSize = 256 << 10

// records calls each for every line of a file until it returns an error. Lines are decoded while those before them are
// handled.
func records(f io.Reader, each func(recordRead) error) error {
	batches := make(chan chan []recordRead, runtime.GOMAXPROCS(0))
	stop := make(chan struct{})
	defer func() {
		close(stop)
		for range batches { // until f is read no more
		}
	}()
	var failed error // is read when batches is closed
	go func() {
		defer close(batches)
		for r, at := bufio.NewReaderSize(f, 1<<20), int64(0); failed == nil; {
			var lines [][]byte
			var size int64
			for size < batchSize && failed == nil {
				var entry []byte
				entry, failed = r.ReadBytes('\n')
				if failed != nil && !errors.Is(failed, io.EOF) {
					failed = fmt.Errorf("reading on at byte %d: %w", at+size, failed)
				} else if len(entry) > 0 {
					lines = append(lines, entry)
					size += int64(len(entry))
				}
			}
			batch := make(chan []recordRead, 1)
			go func(at int64) { batch <- decodeAll(lines, at) }(at)
			at += size
			select {
			case batches <- batch:
			case <-stop:
				return
			}
		}
	}()
	for batch := range batches {
		for _, rec := range <-batch {
			if err := each(rec); err != nil {
				return err
			}
		}
	}
	if errors.Is(failed, io.EOF) {
		return nil
	}
	return failed
}

// decodeAll decodes lines, of which the first begins at byte at.
func decodeAll(lines [][]byte, at int64) []recordRead {
	all := make([]recordRead, 0, len(lines))
	d := decoder{names: map[string]string{}}
	for _, entry := range lines {
		rec := d.record(entry)
		rec.at = at
		at += rec.size
		all = append(all, rec)
	}
	return all
}
