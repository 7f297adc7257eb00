package memo_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/memo"
)

func TestAnAnswerIsAskedForAgainWhenItIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memo.New[int](time.Minute, 10)
		asked := 0
		get := func() int {
			v, err := m.Get("key", func() (int, error) {
				asked++
				time.Sleep(time.Second) // an answer is as old as its question
				return asked, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		get()
		time.Sleep(59*time.Second - time.Nanosecond)
		if got := get(); got != 1 {
			t.Errorf("a minute less a moment after the question it was asked again: %d", got)
		}
		time.Sleep(time.Nanosecond)
		if got := get(); got != 2 {
			t.Errorf("a minute after the question answer %d was still given", got)
		}
	})
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	t.Parallel()
	m := memo.New[string](time.Minute, 10)
	broken := errors.New("broken")
	if _, err := m.Get("key", func() (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if v, err := m.Get("key", func() (string, error) { return "mended", nil }); v != "mended" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestNoMoreIsRememberedThanTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memo.New[int](time.Minute, 3)
		asked := 0
		ask := func(key string) {
			if _, err := m.Get(key, func() (int, error) { asked++; return 0, nil }); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 100 {
			ask(strconv.Itoa(n))
		}
		ask("99")
		if asked != 100 {
			t.Errorf("the newest was not remembered: %d asked", asked)
		}
		asked = 0
		for n := range 100 {
			ask(strconv.Itoa(n))
		}
		if asked < 97 {
			t.Errorf("%d of a hundred were remembered, the bound is 3", 100-asked)
		}

		time.Sleep(time.Minute) // all have expired: they make room before any fresh one does
		ask("a")
		ask("b")
		ask("c")
		asked = 0
		ask("a")
		ask("b")
		ask("c")
		if asked != 0 {
			t.Errorf("%d of three fresh ones were forgotten", asked)
		}
	})
}
