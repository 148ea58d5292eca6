package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/callfan/callfan/internal/spelling"
)

// checkKeys refuses keys that are no flag of the program. flags are those of the
// command that was chosen, all those of every command: one file serves them all.
func checkKeys(entries map[string]entry, flags []*kong.Flag, all [][]*kong.Flag) error {
	known := map[string]bool{}
	secrets := map[string]*kong.Flag{}
	for _, flag := range slices.Concat(append(all, flags)...) {
		if onlyOnCommandLine(flag) {
			continue
		}
		known[flag.Name] = true
		if variable := flag.Tag.Get("secret"); variable != "" {
			secrets[secretKey(flag)] = flag
		}
	}
	var errs []error
	for _, e := range slices.SortedFunc(maps.Values(entries), func(a, b entry) int { return cmp.Compare(a.order, b.order) }) {
		if known[e.key] {
			continue
		}
		if flag := secrets[e.key]; flag != nil {
			errs = append(errs, fmt.Errorf("%s: %s is a secret and does not belong in this file; set %s, or name a file that holds it by %s",
				e.at, e.key, flag.Tag.Get("secret"), flag.Name))
			continue
		}
		text := fmt.Sprintf("%s: unknown key %q", e.at, e.key)
		if near := spelling.Nearest(e.key, slices.Sorted(maps.Keys(known))); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// onlyOnCommandLine says that a flag makes no sense in a file.
func onlyOnCommandLine(flag *kong.Flag) bool {
	switch flag.Target.Addr().Interface().(type) {
	case *File, *helpFlag, *versionFlag:
		return true
	}
	return flag.Tag.Has("commandline")
}
