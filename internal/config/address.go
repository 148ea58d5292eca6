package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/alecthomas/kong"
)

// Address is one URL, or several with commas between them. With a password in it,
// it is accepted from the environment only: command lines are visible to every user
// of a machine, and files are copied around.
type Address string

// errPassword is about an address; it does not repeat it.
var errPassword = errors.New("the address holds a password")

func (a Address) check(flag *kong.Flag, from source) error {
	secret, err := a.hasPassword()
	if err != nil {
		return fmt.Errorf("--%s: %w", flag.Name, err)
	}
	if !secret || from == fromEnvironment || from == fromDefault {
		return nil
	}
	return fmt.Errorf("--%s: %w; give such an address by the environment variable %s only, or the password on its own (see --help)",
		flag.Name, errPassword, strings.Join(flag.Tag.Envs, " or "))
}

func (a Address) hasPassword() (bool, error) {
	for part := range strings.SplitSeq(string(a), ",") {
		u, err := parseAddress(part)
		if err != nil {
			return false, err
		}
		if u.User == nil {
			continue
		}
		// A user without a password is a NATS token.
		if _, has := u.User.Password(); has || u.Scheme == "nats" || u.Scheme == "tls" {
			return true, nil
		}
	}
	return false, nil
}

// parseAddress reads host:port too. Its errors do not repeat the address, which may
// hold a password.
func parseAddress(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return &url.URL{}, nil
	}
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the address cannot be read; want scheme://host:port, with special characters of a password percent-encoded")
	}
	return u, nil
}

// String is the address without users and passwords.
func (a Address) String() string {
	parts := strings.Split(string(a), ",")
	for i, part := range parts {
		u, err := parseAddress(part)
		switch {
		case err != nil:
			parts[i] = "(unreadable address)"
		case u.User != nil:
			u.User = url.User("xxxxx")
			parts[i] = u.String()
		}
	}
	return strings.Join(parts, ",")
}

// LogValue is String, for log/slog.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Reveal is the address as it was given.
func (a Address) Reveal() string { return string(a) }
