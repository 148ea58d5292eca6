package config

import "runtime/debug"

// BuildVersion is the version of the program's module, "devel" for a build from a
// work tree.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
