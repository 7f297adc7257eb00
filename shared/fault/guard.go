package fault

import (
	"fmt"
	"runtime/debug"
)

// Panicked is the error of a function that panicked.
type Panicked struct {
	Value any
	Stack []byte
}

func (p *Panicked) Error() string { return fmt.Sprintf("panicked: %v", p.Value) }

// Guard runs do and turns a panic into a *Panicked, so that one bad record or row stops no other.
func Guard(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panicked{Value: v, Stack: debug.Stack()}
		}
	}()
	return do()
}
