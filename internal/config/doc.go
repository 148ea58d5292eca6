// Package config reads the settings of callfan's programs.
//
// The struct tags of a program's settings are their single source: names, help,
// environment variables and defaults. A setting comes from the first of
//
//  1. the flag on the command line,
//  2. the environment variable,
//  3. the YAML file given by --config (or CALLFAN_CONFIG), whose keys are the
//     names of the flags without dashes in front,
//  4. the default.
//
// A variable that is set counts, even when it is empty. Lists are replaced, never
// merged. Secrets are never the value of a flag or of a key in the file: they come
// from an environment variable, or from a file that a flag, a variable or a key
// names. The same holds for addresses with a password in them: they are accepted
// from the environment only.
package config
