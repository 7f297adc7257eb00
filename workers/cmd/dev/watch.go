package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch sends once for each burst of changes to Go files below the folders, until stop.
func watch(folders []string) (changed <-chan struct{}, stop func(), err error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range folders {
		if err := add(w, folder); err != nil {
			_ = w.Close()
			return nil, nil, err
		}
	}
	bursts := make(chan struct{}, 1)
	go func() {
		quiet := time.NewTimer(time.Hour)
		defer quiet.Stop()
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				if info, err := os.Stat(e.Name); err == nil && info.IsDir() && e.Has(fsnotify.Create) {
					_ = add(w, e.Name) // it may be gone again
					quiet.Reset(settle)
				}
				isProgram := strings.HasSuffix(e.Name, ".go") && !strings.HasSuffix(e.Name, "_test.go")
				if isProgram && e.Op != fsnotify.Chmod {
					quiet.Reset(settle)
				}
			case err := <-w.Errors:
				if err != nil { // events were lost: build, in case they mattered
					quiet.Reset(settle)
				}
			case <-quiet.C:
				select {
				case bursts <- struct{}{}:
				default:
				}
			}
		}
	}()
	return bursts, func() { _ = w.Close() }, nil
}

// add watches a folder and all below it, but hidden ones.
func add(w *fsnotify.Watcher, folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case path != folder && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		return w.Add(path)
	})
}
