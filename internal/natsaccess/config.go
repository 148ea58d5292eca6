package natsaccess

import (
	"fmt"
	"strconv"
	"strings"
)

// Config is a part of the configuration of nats-server. It holds no secrets: passwords or public nkeys come from
// variables of the server's environment, DISPATCHER_PASSWORD and WEATHER_PASSWORD for example.
func (p Plan) Config() string {
	w := &writer{}
	w.line("# What executors may do, least privilege, for nats-server: include it from the server's configuration.")
	w.line("# The server reads %s from its environment%s.", strings.Join(p.variables(), ", "), p.kind())
	if !p.Accounts {
		w.open("authorization {")
		w.open("users: [")
		w.user(p.identity(dispatcher), nil)
		for i := range p.Grants {
			w.user(p.identity(p.Grants[i].Pool), &p.Grants[i])
		}
		w.close("]")
		w.close("}")
		return w.String()
	}
	w.open("accounts {")
	p.streamsAccount(w)
	for i := range p.Grants {
		p.poolAccount(w, &p.Grants[i])
	}
	w.close("}")
	return w.String()
}

func (p Plan) streamsAccount(w *writer) {
	w.open("%s {", p.Account)
	w.line("jetstream: enabled")
	w.open("users: [")
	w.user(p.identity(dispatcher), nil)
	w.close("]")
	w.open("exports: [")
	for _, grant := range p.Grants {
		for _, export := range grant.Exports {
			kind, replies := "service", ""
			if export.Stream {
				kind = "stream"
			}
			if export.Replies {
				replies = ", response_type: stream"
			}
			w.line("{ %s: %s, accounts: [%s]%s }", kind, quote(export.Subject), grant.Account, replies)
		}
	}
	w.close("]")
	w.close("}")
}

func (p Plan) poolAccount(w *writer, grant *Grant) {
	w.open("%s {", grant.Account)
	w.open("users: [")
	w.user(p.identity(grant.Pool), grant)
	w.close("]")
	w.open("imports: [")
	for _, export := range grant.Exports {
		from := fmt.Sprintf("{ account: %s, subject: %s }", p.Account, quote(export.Subject))
		switch {
		case export.Stream:
			w.line("{ stream: %s }", from)
		case export.Local != export.Subject:
			w.line("{ service: %s, to: %s }", from, quote(export.Local))
		default:
			w.line("{ service: %s }", from)
		}
	}
	w.close("]")
	w.close("}")
}

// identity is how a user proves who it is.
func (p Plan) identity(user string) string {
	if p.NKeys {
		return "nkey: $" + variable(user) + "_NKEY"
	}
	return "user: " + quote(user) + ", password: $" + variable(user) + "_PASSWORD"
}

func (p Plan) variables() []string {
	suffix := "_PASSWORD"
	if p.NKeys {
		suffix = "_NKEY"
	}
	names := []string{variable(dispatcher) + suffix}
	for _, grant := range p.Grants {
		names = append(names, variable(grant.Pool)+suffix)
	}
	return names
}

func (p Plan) kind() string {
	if p.NKeys {
		return ": public nkeys, which begin with U"
	}
	return ": passwords, better as hashes of `nats server passwd`"
}

func quote(text string) string { return strconv.Quote(text) }

// writer writes indented lines.
type writer struct {
	strings.Builder
	depth int
}

func (w *writer) line(format string, args ...any) {
	w.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(w, format+"\n", args...)
}

func (w *writer) open(format string, args ...any) { w.line(format, args...); w.depth++ }
func (w *writer) close(text string)               { w.depth--; w.line("%s", text) }

func (w *writer) user(identity string, grant *Grant) {
	if grant == nil { // all that the account has
		w.line("{ %s }", identity)
		return
	}
	w.open("{ %s, permissions: {", identity)
	for _, operation := range []struct {
		name     string
		subjects []string
	}{{"publish", grant.Permissions.Publish}, {"subscribe", grant.Permissions.Subscribe}} {
		w.open("%s: { allow: [", operation.name)
		for _, subject := range operation.subjects {
			w.line("%s", quote(subject))
		}
		w.close("] }")
	}
	w.close("} }")
}
