package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Secret is a value that is never given by a flag or in the configuration file.
// The flag of this type names a file that holds it; the tag secret:"VARIABLE" names
// the environment variable that may hold it instead. White space at both ends of
// the file does not count.
//
// A Secret does not show itself when it is printed or logged.
type Secret struct {
	file, value string
}

// NewSecret makes a Secret of a value, for programs that have it already.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal is the secret itself, empty when there is none.
func (s Secret) Reveal() string { return s.value }

// String says only whether there is a secret.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "(secret)"
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, for JSON and for log/slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the name of the file.
func (s *Secret) UnmarshalText(text []byte) error {
	s.file = string(text)
	return nil
}

// secretKey is the flag's name without -file: the key that people try.
func secretKey(flag *kong.Flag) string { return strings.TrimSuffix(flag.Name, "-file") }

// load finds the value. A flag for the file wins over the variables, and they win
// over a file that the configuration names.
func (s *Secret) load(flag *kong.Flag, from source) error {
	variable := flag.Tag.Get("secret")
	value, set := os.LookupEnv(variable)
	if set && value != "" {
		switch {
		case from == fromEnvironment && s.file != "":
			return fmt.Errorf("both %s and %s are set; keep one", variable, strings.Join(flag.Tag.Envs, " or "))
		case from != fromFlag:
			s.file, s.value = "", value
			return nil
		}
	}
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		if len(s.file) > 0 && errors.Is(err, os.ErrNotExist) {
			// Somebody may have given the secret itself: do not repeat it.
			return fmt.Errorf("--%s: there is no such file; it takes the name of a file that holds the secret", flag.Name)
		}
		return fmt.Errorf("--%s: %w", flag.Name, err)
	}
	if s.value = strings.TrimSpace(string(text)); s.value == "" {
		return fmt.Errorf("--%s: the file %s is empty", flag.Name, s.file)
	}
	return nil
}
