package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// InstallNode installs the Node.js packages that package-lock.json in folder pins, and returns their
// node_modules. They are kept in the user's cache, keyed by both files, installed under a lock, and
// never changed afterwards. Installing needs npm and its registry.
func InstallNode(ctx context.Context, folder string) (modules string, err error) {
	pins := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		pins[name] = text
		fmt.Fprintf(sum, "%s\n%d\n%s", name, len(text), text)
	}
	home, err := cache("node")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, hex.EncodeToString(sum.Sum(nil))[:12])
	modules = filepath.Join(dir, "node_modules")
	complete := filepath.Join(dir, "complete")

	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for the installation of %s: %w", folder, err)
	}
	defer unlock()
	if _, err := os.Stat(complete); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range pins {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	// ci removes the rest of an interrupted installation.
	if err := run(ctx, dir+".log", "npm", "ci", "--prefix", dir, "--ignore-scripts", "--no-audit",
		"--no-fund"); err != nil {
		return "", fmt.Errorf("installing %s: %w", folder, err)
	}
	return modules, os.WriteFile(complete, nil, 0o644)
}
