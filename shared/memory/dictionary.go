package memory

// dictionary gives numbers to texts, and counts their uses: a text that is used no more leaves its number to another.
// The number of "" is 0.
type dictionary struct {
	numbers map[string]uint32
	texts   []string
	uses    []uint32
	free    []uint32
}

func newDictionary() dictionary {
	return dictionary{numbers: map[string]uint32{}, texts: []string{""}, uses: []uint32{1}}
}

// add counts a use of a text and returns its number.
func (d *dictionary) add(text string) uint32 {
	if text == "" {
		return 0
	}
	n, known := d.numbers[text]
	if !known {
		if last := len(d.free) - 1; last >= 0 {
			n, d.free = d.free[last], d.free[:last]
			d.texts[n] = text
		} else {
			n = uint32(len(d.texts))
			d.texts, d.uses = append(d.texts, text), append(d.uses, 0)
		}
		d.numbers[text] = n
	}
	d.uses[n]++
	return n
}

// drop ends a use of a text.
func (d *dictionary) drop(n uint32) {
	if n == 0 {
		return
	}
	if d.uses[n]--; d.uses[n] == 0 {
		delete(d.numbers, d.texts[n])
		d.texts[n] = ""
		d.free = append(d.free, n)
	}
}

// value returns a text.
func (d *dictionary) value(n uint32) string { return d.texts[n] }
