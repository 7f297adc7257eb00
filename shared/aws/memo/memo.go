package memo

import (
	"sync"
	"time"
)

// Memo remembers values by key. The zero Memo remembers nothing; use New.
type Memo[V any] struct {
	age  time.Duration
	most int

	mu      sync.Mutex
	answers map[string]answer[V]
}

type answer[V any] struct {
	value V
	until time.Time
}

// New returns a Memo whose answers live for age, and which holds at most most of them.
func New[V any](age time.Duration, most int) *Memo[V] {
	return &Memo[V]{age: age, most: most, answers: map[string]answer[V]{}}
}

// Get returns what is remembered under key, or asks and remembers.
func (m *Memo[V]) Get(key string, ask func() (V, error)) (V, error) {
	m.mu.Lock()
	known, ok := m.answers[key]
	m.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.value, nil
	}
	since := time.Now() // of the question: the answer may be as old as that
	v, err := ask()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.answers[key]; !ok && len(m.answers) >= m.most {
		m.forget(time.Now())
	}
	if len(m.answers) < m.most || ok {
		m.answers[key] = answer[V]{v, since.Add(m.age)}
	}
	return v, nil
}

// forget makes room: what has expired goes, and if nothing has, any one.
func (m *Memo[V]) forget(now time.Time) {
	one := ""
	for key, a := range m.answers {
		if one = key; !now.Before(a.until) {
			delete(m.answers, key)
		}
	}
	if len(m.answers) >= m.most {
		delete(m.answers, one)
	}
}
