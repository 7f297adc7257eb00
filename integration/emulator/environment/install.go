package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// OpenAPI names the tools that read the OpenAPI document. They are no emulator, but pinned and
// installed like one.
const OpenAPI = "openapi"

// Webhooks names the library that verifies what webhooks are sent.
const Webhooks = "webhooks"

// Install creates k's virtual environment if needed and returns its interpreter.
func Install(ctx context.Context, k Kind) (python string, err error) {
	return InstallPinned(ctx, k.name)
}

// InstallPinned creates the virtual environment of the requirement files of that name if needed and
// returns its interpreter. It is keyed by the requirement files and the Python version, created
// under a lock, and never changed afterwards. Creating it needs PyPI.
func InstallPinned(ctx context.Context, name string) (python string, err error) {
	base, version, err := basePython(ctx)
	if err != nil {
		return "", err
	}
	pins, key, err := pinned(name, version)
	if err != nil {
		return "", err
	}
	home, err := cache("environments")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, name+"-"+key)
	python = filepath.Join(dir, "bin", "python")
	complete := filepath.Join(dir, "complete")

	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for the installation of %s: %w", name, err)
	}
	defer unlock()
	if _, err := os.Stat(complete); err == nil {
		return python, nil
	}
	if err := os.RemoveAll(dir); err != nil { // remove the rest of an interrupted installation
		return "", err
	}
	// The base's pip installs into it: that saves unpacking another one, and needs no ensurepip,
	// which Debian packages separately.
	if err := run(ctx, dir+".log", base, "-m", "venv", "--without-pip", dir); err != nil {
		return "", fmt.Errorf("making a virtual environment for %s: %w", name, err)
	}
	for name, text := range pins {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	if err := run(ctx, dir+".log", base, "-m", "pip", "--python", python, "install",
		"--quiet", "--no-input", "--disable-pip-version-check", "--prefer-binary",
		"-r", filepath.Join(dir, name+".txt")); err != nil {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	return python, os.WriteFile(complete, []byte(version+"\n"), 0o644)
}

// basePython finds the interpreter for new environments. The pins were tried on 3.11, so it is
// preferred to a newer default.
func basePython(ctx context.Context) (path, version string, err error) {
	const ask = `import sys, venv; v = sys.version_info; print(sys.version, sys.base_prefix); sys.exit(v < (3, 10))`
	for _, name := range []string{"python3.11", "python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "-I", "-c", ask).Output()
		if err == nil {
			return path, string(out), nil
		}
	}
	return "", "", errors.New("no Python of 3.10 or later with venv found (tried python3.11 and python3)")
}

// pinned returns the requirement files of that name, and a short hash of them and of the Python
// version.
func pinned(name, version string) (files map[string][]byte, key string, err error) {
	files = map[string][]byte{}
	sum := sha256.New()
	for _, file := range []string{name + ".txt", name + ".lock.txt"} {
		text, err := requirements.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		files[file] = text
		fmt.Fprintf(sum, "%s\n%d\n%s", file, len(text), text)
	}
	fmt.Fprint(sum, version)
	return files, hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// cache returns a folder in the user's cache and creates it if needed. Without a home, as in some
// containers, it is in the system's temporary folder.
func cache(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "punctual", "emulator", name)
	return dir, os.MkdirAll(dir, 0o755)
}

// lock takes the file lock at path; the kernel releases it if the holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}

// run runs a command and appends its output to the file log, whose end is part of the error.
func run(ctx context.Context, log, name string, args ...string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	err = errors.Join(cmd.Run(), out.Close())
	if err != nil {
		return fmt.Errorf("%w, and said:\n%s", err, tail(log))
	}
	return nil
}
