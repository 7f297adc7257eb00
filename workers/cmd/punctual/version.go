package main

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// version is what the build knows about itself: the module's version, the commit, and Go's version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		commit += ", changed since"
	}
	return strings.Join([]string{cmp.Or(info.Main.Version, "(devel)"), "commit " + commit, info.GoVersion}, ", ")
}
