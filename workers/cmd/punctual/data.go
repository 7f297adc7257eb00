package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"punctual/shared/memory"
	"punctual/workers/laptop"
)

type dataFolders struct {
	Check  checkData  `cmd:"" help:"Check whether a data folder can be read, without changing it."`
	Repair repairData `cmd:"" help:"Back up the files of a damaged data folder, and rewrite what can be read."`
}

type dataFolder struct {
	Dir string `arg:"" help:"Data folder of serve --data; no process may be serving it."`
}

type checkData struct{ dataFolder }

// Run shows what the files hold, and fails if they are damaged.
func (c checkData) Run(s *shell) error {
	found, err := laptop.CheckData(c.Dir)
	if err != nil {
		return err
	}
	if err := showSurvey(s, found); err != nil {
		return err
	}
	if n := len(found.Damages); n > 0 {
		return fmt.Errorf("%s is damaged (%d findings); punctual data repair %[1]s saves what can be read", c.Dir, n)
	}
	return nil
}

type repairData struct{ dataFolder }

// Run repairs the files, and shows what they held before.
func (c repairData) Run(s *shell) error {
	found, err := laptop.RepairData(c.Dir)
	if err != nil {
		return err
	}
	if err := showSurvey(s, found); err != nil {
		return err
	}
	if found.Kept == "" {
		_, err = fmt.Fprintln(s.err, "Nothing is damaged, and nothing was changed.")
		return err
	}
	_, err = fmt.Fprintf(s.err, "What could be read is saved; the files as they were are in %s\n", found.Kept)
	return err
}

// showSurvey writes what was found in the files.
func showSurvey(s *shell, found memory.Survey) error {
	if s.output == "json" || s.output == "yaml" {
		return s.encode(found)
	}
	files := func(yield func(memory.SurveyedFile, error) bool) {
		for _, f := range found.Files {
			if !yield(f, nil) {
				return
			}
		}
	}
	err := list(s, files, 0, func(f memory.SurveyedFile) string { return f.Path },
		column[memory.SurveyedFile]{"FILE", func(f memory.SurveyedFile) string { return f.Path }},
		column[memory.SurveyedFile]{"FORMAT", func(f memory.SurveyedFile) string { return fmt.Sprint(f.Format) }},
		column[memory.SurveyedFile]{"BYTES", func(f memory.SurveyedFile) string { return fmt.Sprint(f.Bytes) }},
		column[memory.SurveyedFile]{"RECORDS", func(f memory.SurveyedFile) string { return fmt.Sprint(f.Records) }},
		column[memory.SurveyedFile]{"DAMAGED", func(f memory.SurveyedFile) string { return fmt.Sprint(f.Damages) }})
	if err != nil || s.output == "name" {
		return err
	}
	for _, d := range found.Damages {
		_, err = fmt.Fprintln(s.out, plain(d.Error()))
	}
	for _, f := range found.Files {
		if f.Torn > 0 {
			_, err = fmt.Fprintf(s.out, "%s ends in %d bytes of an unfinished record, which the next start cuts off\n",
				f.Path, f.Torn)
		}
	}
	return errors.Join(err, showHeld(s.out, found))
}

// showHeld writes how much can be read.
func showHeld(w io.Writer, found memory.Survey) error {
	var parts []string
	for _, table := range slices.Sorted(maps.Keys(found.Rows)) {
		if n := found.Rows[table]; n > 0 {
			parts = append(parts, fmt.Sprintf("rows of %s: %d", table, n))
		}
	}
	parts = append(parts, fmt.Sprintf("messages: %d, timers: %d, blobs: %d", found.Messages, found.Timers, found.Blobs))
	_, err := fmt.Fprintf(w, "Readable: %s\n", strings.Join(parts, ", "))
	return err
}
