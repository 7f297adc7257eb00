package memory

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Folder holds the files of a World of [Open]. It is a port, so that a test can let a disk fail.
type Folder interface {
	// Path returns the path of a file, for messages.
	Path(name string) string
	// Names lists the files, in any order.
	Names() ([]string, error)
	// Read opens a file for reading.
	Read(name string) (io.ReadCloser, error)
	// Create makes a file, or empties the one that there is.
	Create(name string) (File, error)
	// Append opens a file whose writes go to its end.
	Append(name string) (File, error)
	// Rename gives a file another name. It replaces a file of that name.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names of all files survive a failure of the machine.
	Sync() error
}

// File is an open file of a Folder. A file keeps its identity when it is renamed through its Folder.
type File interface {
	io.WriteCloser
	Truncate(size int64) error
	// Sync makes the contents survive a failure of the machine.
	Sync() error
	// Linked returns an error when no folder has this file any more. It is quick.
	Linked() error
	// Present returns an error unless the folder still has this file under a name.
	Present(name string) error
}

// Dir returns the folder at a path, which it makes if there is none.
func Dir(path string) (Folder, error) {
	path = filepath.Clean(path)
	switch _, err := os.Stat(path); {
	case err == nil:
		return dir(path), nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return dir(path), dir(filepath.Dir(path)).Sync()
}

// dir is a folder of the operating system.
type dir string

func (d dir) Path(name string) string { return filepath.Join(string(d), name) }

func (d dir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d dir) Read(name string) (io.ReadCloser, error) { return os.Open(d.Path(name)) }

func (d dir) Create(name string) (File, error) { return d.open(name, os.O_TRUNC) }

func (d dir) Append(name string) (File, error) { return d.open(name, 0) }

func (d dir) open(name string, flag int) (File, error) {
	f, err := os.OpenFile(d.Path(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND|flag, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &dirFile{File: f, fd: int(f.Fd()), dir: d, info: info}, nil
}

func (d dir) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }

func (d dir) Remove(name string) error { return os.Remove(d.Path(name)) }

func (d dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type dirFile struct {
	*os.File
	fd   int
	dir  dir
	info os.FileInfo
}

func (f *dirFile) Linked() error { return linked(f.fd, f.Name()) }

func (f *dirFile) Present(name string) error {
	path := f.dir.Path(name)
	info, err := os.Lstat(path)
	if err == nil && !os.SameFile(info, f.info) {
		err = &os.PathError{Op: "finding", Path: path, Err: errors.New("another file has this name now")}
	}
	return err
}
