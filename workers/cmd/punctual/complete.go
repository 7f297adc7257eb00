package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Kong's completion libraries have had no release for years, so the commands that kong knows are walked here. The
// shells ask by the word below, with the words before the cursor and the one at it.
const completing = "__complete"

var (
	//go:embed completion/bash
	bashCompletion string
	//go:embed completion/zsh
	zshCompletion string
	//go:embed completion/fish
	fishCompletion string
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell to complete in: bash, zsh or fish."`
}

// Run writes what the shell reads.
func (c completion) Run(s *shell) error {
	_, err := fmt.Fprint(s.out, map[string]string{"bash": bashCompletion, "zsh": zshCompletion,
		"fish": fishCompletion}[c.Shell])
	return err
}

// candidate is a word that may be at the cursor.
type candidate struct{ word, help string }

// complete returns what may take the place of the last word, after the others. None: a name of a file, or
// anything.
func complete(app *kong.Application, words []string, contexts func() []string) (all []candidate) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, arguments := app.Node, 0
	var open *kong.Flag // whose value comes next
	for _, word := range words[:len(words)-1] {
		switch {
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-") && word != "-":
			if flag := flagOf(node, word); flag != nil && !flag.IsBool() && !strings.Contains(word, "=") {
				open = flag
			}
		default:
			child := childOf(node, word)
			if child == nil {
				arguments++
				continue
			}
			if node = child; child.Type == kong.ArgumentNode {
				arguments = len(child.Positional)
			}
		}
	}
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			all = append(all, candidate{word, help})
		}
	}
	switch {
	case open != nil && open.Name == "context":
		for _, name := range contexts() {
			add(name, "")
		}
	case open != nil:
		for _, value := range open.EnumSlice() {
			add(value, "")
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				add("--"+flag.Name, flag.Help)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden && child.Type != kong.ArgumentNode {
				add(child.Name, child.Help)
			}
		}
		if arguments < len(node.Positional) {
			for _, value := range node.Positional[arguments].EnumSlice() {
				add(value, "")
			}
		}
	}
	return all
}

// childOf returns the verb below n that a word names, else that which takes any word; nil if there is none.
func childOf(n *kong.Node, word string) (found *kong.Node) {
	for _, child := range n.Children {
		if child.Type == kong.ArgumentNode {
			found = child
		} else if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return found
}

// flagOf returns the flag that a word such as --output or -o gives, nil if there is none.
func flagOf(n *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range n.AllFlags(false) {
		for _, flag := range group {
			if flag.Name == name && strings.HasPrefix(word, "--") ||
				flag.Short != 0 && !strings.HasPrefix(word, "--") && word == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

// contexts are the names in the user's config file; none if it cannot be read.
func contexts() []string {
	c, err := readConfig("")
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Contexts))
}
