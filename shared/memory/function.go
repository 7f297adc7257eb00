package memory

import (
	"context"
	"sync"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// Functions are Lambda functions in memory.
type Functions struct {
	world *World
	mu    sync.RWMutex
	known map[string]function
}

// Run is a function's code. Its error is the function's own failure.
type Run func(ctx context.Context, input []byte) (output []byte, err error)

type function struct {
	owner string
	run   Run
}

// Put deploys a function and replaces the one of that name. owner is its tag punctual:tenant.
func (fs *Functions) Put(name, owner string, run Run) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.known[name] = function{owner: owner, run: run}
}

func (fs *Functions) of(name string) (function, error) {
	fs.mu.RLock()
	defer fs.mu.RUnlock()
	f, ok := fs.known[name]
	if !ok {
		return f, fault.New(fault.NotFound, nil, "function %s", name)
	}
	return f, nil
}

// Invoke runs a function once. functionError is "" if it succeeded; otherwise it names the failure,
// and output holds its details. err is not nil when the function could not be run or did not
// answer.
func (fs *Functions) Invoke(ctx context.Context, name string,
	input []byte) (output []byte, functionError string, err error) {
	c := Call{Op: FunctionInvoke, Name: name, Size: len(input)}
	f, err := fs.world.enter(ctx, c)
	if err != nil {
		return nil, "", err
	}
	fn, err := fs.of(name)
	if err != nil {
		return nil, "", err
	}
	output, failed := fn.run(ctx, input)
	if err := ctx.Err(); err != nil {
		return nil, "", fault.New(fault.Unavailable, err, "invoking function %s", name)
	}
	if err := f.after(c); err != nil {
		return nil, "", err
	}
	if failed != nil {
		return []byte(failed.Error()), "Unhandled", nil
	}
	return output, "", nil
}

// Allowed reports whether the tenant may invoke the function. An absent one is a fault.NotFound.
func (fs *Functions) Allowed(ctx context.Context, name string, t tenant.ID) (bool, error) {
	c := Call{Op: FunctionAllowed, Name: name}
	f, err := fs.world.enter(ctx, c)
	if err != nil {
		return false, err
	}
	fn, err := fs.of(name)
	if err != nil {
		return false, err
	}
	if err := f.after(c); err != nil {
		return false, err
	}
	return fn.owner == contract.AnyTenant || fn.owner != "" && fn.owner == string(t), nil
}
