package item_test

import (
	"errors"
	"testing"
	"time"

	"punctual/shared/item"
)

// thing has an attribute of each kind.
type thing struct {
	text    string
	number  int64
	count   int
	flag    bool
	at, end time.Time
	span    time.Duration
	list    string
}

func (t *thing) attributes(c *item.Codec) {
	c.Text("text", &t.text)
	c.Number("number", &t.number)
	c.Int("count", &t.count)
	c.Flag("flag", &t.flag)
	c.Instant("at", &t.at)
	c.Second("end", &t.end)
	c.Span("span", &t.span)
	c.Coded("list", func() string { return t.list }, func(s string) error {
		if t.list = s; s == "broken" {
			return errors.New("broken")
		}
		return nil
	})
}

func encoded(t thing) []item.Attribute {
	c := item.Writer(make([]item.Attribute, 0, 8))
	t.attributes(&c)
	return c.Attributes()
}

func TestCodec_ReadsWhatItWrote(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 28, 12, 0, 0, 5e6, time.UTC)
	full := thing{"x", -7, 8, true, at, at.Truncate(time.Second), 1500 * time.Millisecond, "a,b"}
	for _, want := range []thing{{}, full} {
		var got thing
		attributes := encoded(want)
		i := item.Encoded(attributes, 8)
		c := item.Reader(i)
		if got.attributes(&c); got != want || c.Unreadable() != "" {
			t.Errorf("it became %+v, %q, and was %+v", got, c.Unreadable(), want)
		}
		if item.SizeOf(attributes) != i.Size() {
			t.Errorf("the attributes have %d bytes, the item %d", item.SizeOf(attributes), i.Size())
		}
	}
	if i := item.Encoded(encoded(thing{}), 8); len(i) > 0 {
		t.Errorf("the zero value has attributes: %v", i)
	}
}

func TestCodec_NamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"number", "count", "at", "end", "span"} {
		c := item.Reader(item.Item{name: "noon"})
		if new(thing).attributes(&c); c.Unreadable() != name {
			t.Errorf("a text for %s: unreadable is %q", name, c.Unreadable())
		}
	}
	c := item.Reader(item.Item{"list": "broken"})
	if new(thing).attributes(&c); c.Unreadable() != "list" {
		t.Errorf("a broken list: unreadable is %q", c.Unreadable())
	}
}

func TestChanges_SetsAndRemovesWhatDiffers(t *testing.T) {
	t.Parallel()
	set := item.Changes(encoded(thing{text: "a", number: 1, list: "l"}), encoded(thing{text: "b", number: 1, count: 2}))
	if len(set) != 3 || set["text"] != "b" || set["count"] != int64(2) || set["list"] != nil {
		t.Errorf("changes: %v", set)
	}
}
