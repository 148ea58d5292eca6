package config

import "runtime/debug"

// release is the version that an image was built for; the build sets it.
var release string

// BuildVersion is the version that the program was built for, or that of its module;
// "devel" for a build from a work tree.
func BuildVersion() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
