package natsaccess

import (
	"fmt"
	"strings"
)

// NSC is a shell script of nsc commands, for servers that trust an operator's JWTs. It expects that the operator and the
// account with the streams exist, and leaves a credentials file for each pool where nsc keeps them.
func (p Plan) NSC() string {
	w := &writer{}
	w.line("#!/bin/sh")
	w.line("# What executors may do, least privilege, by nsc. The account %s holds the streams.", p.Account)
	w.line("set -eu")
	for _, grant := range p.Grants {
		w.line("")
		account := p.Account
		if p.Accounts {
			account = grant.Account
			p.nscAccount(w, grant)
		}
		w.line("nsc add user --account %s --name %s --allow-pub %s --allow-sub %s", account, grant.Pool,
			shell(strings.Join(grant.Permissions.Publish, ",")), shell(strings.Join(grant.Permissions.Subscribe, ",")))
	}
	return w.String()
}

// nscAccount makes the pool's account and lets it import. The exports are private: an import needs an activation.
func (p Plan) nscAccount(w *writer, grant Grant) {
	w.line("nsc add account --name %s", grant.Account)
	w.line(`account=$(nsc describe account --name %s --field sub | tr -d '"')`, grant.Account)
	w.line("activations=$(mktemp -d)")
	for n, export := range grant.Exports {
		kind := ""
		if !export.Stream {
			kind = " --service"
		}
		if export.Replies {
			kind += " --response-type Stream"
		}
		name, subject := fmt.Sprintf("%s: %s", grant.Pool, export.Subject), shell(export.Subject)
		w.line("nsc add export --account %s --name %s --subject %s --private%s", p.Account, shell(name), subject, kind)
		w.line(`nsc generate activation --account %s --subject %s --target-account "$account" --output-file "$activations/%d"`, p.Account, subject, n)
		w.line(`nsc add import --account %s --name %s --token "$activations/%d" --local-subject %s`, grant.Account, shell(name), n, shell(export.Local))
	}
	w.line(`rm -r "$activations"`)
}

func shell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
