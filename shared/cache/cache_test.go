package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/cache"
)

// source is what is read: it answers with how often it was read.
type source struct {
	reads atomic.Int64
	takes time.Duration
	err   error
}

func (s *source) read(context.Context) (int, error) {
	n := int(s.reads.Add(1))
	time.Sleep(s.takes)
	if s.err != nil {
		return 0, s.err
	}
	return n, nil
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func get(t *testing.T, c *cache.Cache[string, int], s *source) int {
	t.Helper()
	v, err := c.Get(t.Context(), "key", s.read)
	if err != nil {
		t.Error(err)
	}
	return v
}

func TestCache_CountsAgeFromTheBeginningOfTheRead(t *testing.T) {
	t.Parallel()
	bubble(t, "an answer serves until its read began a minute ago", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Second}
		get(t, c, s)
		time.Sleep(59*time.Second - time.Nanosecond)
		if got := get(t, c, s); got != 1 {
			t.Errorf("a minute less a moment after the read began it was read again: %d", got)
		}
		time.Sleep(time.Nanosecond)
		if got := get(t, c, s); got != 2 {
			t.Errorf("a minute after the read began answer %d still served", got)
		}
	})
	bubble(t, "an answer of a cache without an age serves for ever", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Most: 10})
		s := &source{}
		get(t, c, s)
		time.Sleep(1000 * time.Hour)
		if got := get(t, c, s); got != 1 {
			t.Errorf("it was read again: %d", got)
		}
	})
	bubble(t, "an asker may want a younger answer than others", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{}
		get(t, c, s)
		time.Sleep(time.Second)
		began := time.Now()
		v, at, err := c.Within(t.Context(), "key", time.Second, s.read)
		if v != 2 || !at.Equal(began) || err != nil {
			t.Errorf("got %d of %s, %v; want the second read, of %s", v, at, err, began)
		}
		if v, at, _ = c.Within(t.Context(), "key", time.Hour, s.read); v != 2 || !at.Equal(began) {
			t.Errorf("the youngest answer was not kept: %d of %s", v, at)
		}
	})
	t.Run("the clock that is handed in decides", func(t *testing.T) {
		t.Parallel()
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 1, Now: func() time.Time { return now }})
		s := &source{}
		get(t, c, s)
		now = now.Add(time.Minute)
		if got := get(t, c, s); got != 2 {
			t.Errorf("got answer %d", got)
		}
	})
}

func TestCache_KeepsErrorsOnlyWhenConfigured(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	bubble(t, "the next asker reads after an error", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{err: broken}
		if _, err := c.Get(t.Context(), "key", s.read); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		s.err = nil
		if got := get(t, c, s); got != 2 {
			t.Errorf("got answer %d", got)
		}
	})
	bubble(t, "an error stands longer with each failure, and is forgotten after a success", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{
			Age: time.Nanosecond, Most: 10,
			RetryAfter: func(failures int) time.Duration { return time.Duration(failures) * time.Second },
		})
		s := &source{}
		for _, step := range []struct {
			err   error
			after time.Duration
			reads int64
		}{
			{broken, 0, 1}, {broken, time.Second - 1, 1}, {broken, 1, 2}, {broken, 2*time.Second - 1, 2}, {nil, 1, 3},
			{broken, time.Second, 4}, {broken, time.Second - 1, 4}, {nil, 1, 5},
		} {
			s.err = step.err
			time.Sleep(step.after)
			_, err := c.Get(t.Context(), "key", s.read)
			if !errors.Is(err, step.err) || s.reads.Load() != step.reads {
				t.Errorf("got %v after %d reads; want %v after %d", err, s.reads.Load(), step.err, step.reads)
			}
		}
	})
	bubble(t, "an answer that is young enough serves although a later read failed", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{
			Age: time.Minute, Most: 10, RetryAfter: func(int) time.Duration { return time.Hour },
		})
		s := &source{}
		get(t, c, s)
		s.err = broken
		time.Sleep(time.Second)
		if _, _, err := c.Within(t.Context(), "key", time.Millisecond, s.read); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if got := get(t, c, s); got != 1 {
			t.Errorf("got answer %d", got)
		}
	})
}

func TestCache_ReadsOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	t.Parallel()
	bubble(t, "a hundred askers share one read", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Second}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { get(t, c, s) })
		}
		wg.Wait()
		if n := s.reads.Load(); n != 1 {
			t.Errorf("it was read %d times", n)
		}
	})
	bubble(t, "an asker takes no answer of a read that began too long before", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Second}
		go get(t, c, s)
		time.Sleep(500 * time.Millisecond)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if v, _, err := c.Within(t.Context(), "key", 100*time.Millisecond, s.read); v != 2 || err != nil {
					t.Errorf("got answer %d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := s.reads.Load(); n != 2 {
			t.Errorf("it was read %d times; the ten could share one", n)
		}
	})
	bubble(t, "those who wait share the error", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Second, err: errors.New("broken")}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "key", s.read); !errors.Is(err, s.err) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if n := s.reads.Load(); n != 1 {
			t.Errorf("it was read %d times", n)
		}
	})
	bubble(t, "another reads when the reader gives up", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = c.Get(ctx, "key", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}()
		synctest.Wait()
		time.AfterFunc(time.Second, cancel)
		if got := get(t, c, &source{}); got != 1 {
			t.Errorf("got answer %d", got)
		}
	})
	bubble(t, "another reads when the reader panics", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		go func() {
			defer func() { _ = recover() }()
			_, _ = c.Get(t.Context(), "key", func(context.Context) (int, error) {
				time.Sleep(time.Second)
				panic("broken")
			})
		}()
		synctest.Wait()
		if got := get(t, c, &source{}); got != 1 {
			t.Errorf("got answer %d", got)
		}
	})
	bubble(t, "whoever waits for another's read stops when its own context ends", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Hour}
		go get(t, c, s)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Get(ctx, "key", s.read)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

func TestCache_DropForgetsAnAnswerAndAReadThatGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, "a dropped answer is read again", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{}
		get(t, c, s)
		c.Drop("key")
		if got := get(t, c, s); got != 2 {
			t.Errorf("got answer %d", got)
		}
	})
	bubble(t, "a read that began before the drop is not kept", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 10})
		s := &source{takes: time.Second}
		go get(t, c, s)
		synctest.Wait()
		c.Drop("key")
		if got := get(t, c, s); got != 2 {
			t.Errorf("got answer %d", got)
		}
		if got := get(t, c, s); got != 2 {
			t.Errorf("got answer %d", got)
		}
	})
}

func TestCache_KeepsNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	bubble(t, "what was read longest ago goes first", func(t *testing.T) {
		c := cache.New[string](cache.Options[int]{Age: time.Minute, Most: 3})
		for n := range 100 {
			if _, err := c.Get(t.Context(), strconv.Itoa(n), (&source{}).read); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 100 {
			if _, there := c.Peek(strconv.Itoa(n)); there != (n >= 97) {
				t.Errorf("key %d is kept: %v", n, there)
			}
		}
	})
	t.Run("an answer heavier than the bound is returned and not kept", func(t *testing.T) {
		t.Parallel()
		c := cache.New[string](cache.Options[int]{Most: 10, Weigh: func(v int) int { return v }})
		for _, v := range []int{10, 11} {
			got, err := c.Get(t.Context(), strconv.Itoa(v), func(context.Context) (int, error) { return v, nil })
			if got != v || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		}
		if _, there := c.Peek("10"); !there {
			t.Error("the one that fits was thrown out")
		}
		if _, there := c.Peek("11"); there {
			t.Error("the one that does not fit was kept")
		}
	})
}

// Any sequence of reads, failures, waits and drops, against what must hold of every answer.
func TestCache_GivesNoAnswerThatIsTooOldOrBeyondItsBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		most, age := rapid.IntRange(1, 12).Draw(t, "most"), time.Duration(rapid.IntRange(1, 8).Draw(t,
			"age"))*time.Second
		c := cache.New[int](cache.Options[int]{
			Age: age, Most: most, Weigh: func(v int) int { return v%4 + 1 }, Now: func() time.Time { return now },
		})
		type reading struct {
			v  int
			at time.Time
		}
		last, next := map[int]reading{}, 0
		broken := errors.New("broken")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 7).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "wait")) * time.Second)
			case 1:
				c.Drop(key)
				delete(last, key)
			default:
				fails, did := rapid.IntRange(0, 4).Draw(t, "fails") == 0, false
				v, at, err := c.Within(context.Background(), key, age, func(context.Context) (int, error) {
					did = true
					if next++; fails {
						return 0, broken
					}
					return next, nil
				})
				known, there := last[key]
				switch {
				case did && fails:
					if !errors.Is(err, broken) {
						t.Fatalf("a failed read came back as %d, %v", v, err)
					}
					continue
				case did:
					if v != next || !at.Equal(now) || err != nil {
						t.Fatalf("read %d at %s, got %d of %s, %v", next, now, v, at, err)
					}
					last[key] = reading{v, at}
				case !there || v != known.v || !at.Equal(known.at) || now.Sub(at) >= age || err != nil:
					t.Fatalf("unread answer %d of %s, %v; last read %+v, now %s", v, at, err, known, now)
				}
			}
			weight := 0
			for k := range 8 {
				if v, there := c.Peek(k); there {
					weight += v%4 + 1
				}
			}
			if weight > most {
				t.Fatalf("answers of weight %d are kept, %d is the bound", weight, most)
			}
		}
	})
}

// The race detector watches; each answer must be of a read that began after the last drop that
// its asker knows of.
func TestCache_IsSafeForManyAtOnce(t *testing.T) {
	t.Parallel()
	c := cache.New[string](cache.Options[int64]{Age: time.Microsecond, Most: 5,
		RetryAfter: func(int) time.Duration { return 1 }})
	var version atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for m := range 2000 {
				key := fmt.Sprint((n + m) % 7)
				if m%10 == 0 {
					version.Add(1)
					c.Drop(key)
				}
				least := version.Load()
				_, err := c.Get(t.Context(), key, func(context.Context) (int64, error) {
					if m%13 == 0 {
						return 0, errors.New("broken")
					}
					return version.Load(), nil
				})
				if m%10 == 0 && err == nil {
					c.Drop(key)
					v, err := c.Get(t.Context(), key, func(context.Context) (int64, error) {
						return version.Load(),
							nil
					})
					if err == nil && v < least {
						t.Errorf("an answer of version %d came after a drop at %d", v, least)
					}
				}
			}
		})
	}
	wg.Wait()
}
