package functionfile

import (
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/callfan/callfan/internal/mcptools"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

func (l loader) overrides(at entry, where string, verified bool) (map[string]mcptools.Override, error) {
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return nil, err
	}
	overrides := make(map[string]mcptools.Override, len(entries))
	for _, e := range entries {
		if overrides[e.name], err = l.override(e, where+": "+e.name, verified); err != nil {
			return nil, err
		}
	}
	return overrides, nil
}

func (l loader) override(at entry, where string, verified bool) (mcptools.Override, error) {
	var o mcptools.Override
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return o, err
	}
	p := policyReader{loader: l, verify: verified}
	for _, e := range entries {
		where := where + ": " + e.name
		switch e.name {
		case "name":
			if o.Name, err = l.text(e.value, where); err == nil && o.Name == "" {
				err = l.fault(e.value, "%s is empty; name the function as the model calls it", where)
			}
		case "concurrency":
			o.Concurrency, err = l.concurrency(e, where)
		case "description":
			err = p.read(e, where)
		default:
			if !slices.Contains(policyKeys, e.name) {
				return o, l.unknownKey(e, strings.TrimSuffix(where, ": "+e.name), overrideKeys)
			}
			err = p.read(e, where)
		}
		if err != nil {
			return o, err
		}
	}
	o.Options = p.options
	return o, p.check(where)
}

// policyReader collects the options of a function that is not run by exec or http.
type policyReader struct {
	loader
	options []executor.Option
	// verify: there is one, here or for the whole server.
	verify      bool
	verifyFirst ast.Node // the value of on_uncertain where it is verify
	effects     ast.Node
}

func (p *policyReader) read(e entry, where string) error {
	var o executor.Option
	var err error
	switch e.name {
	case "verify":
		o, err = p.loader.verify(e, where)
		p.verify = true
	case "on_uncertain":
		if text, _ := p.text(e.value, where); call.OnUncertain(text) == call.UncertainVerify {
			p.verifyFirst = e.value
		}
		o, err = p.option(e, where)
	case "effects":
		p.effects = e.value
		o, err = p.option(e, where)
	default:
		o, err = p.option(e, where)
	}
	p.options = append(p.options, o)
	return err
}

func (p *policyReader) check(where string) error {
	if p.verifyFirst != nil && !p.verify {
		return p.fault(p.verifyFirst, "%s: on_uncertain is verify, and there is no verify; add the one that finds out, or use park, fail or rerun", where)
	}
	return nil
}

func (l loader) texts(e entry, where string) ([]string, error) {
	values, err := l.sequence(e.value, where)
	if err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(values))
	for _, v := range values {
		text, err := l.text(v, where)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, l.fault(e.key, "%s is empty; name at least one, or leave it out for all", where)
	}
	return texts, nil
}

func (l loader) boolean(n ast.Node, where string) (bool, error) {
	n, err := l.plain(n)
	if err != nil {
		return false, err
	}
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value, nil
	}
	return false, l.fault(n, "%s must be true or false, not %s", where, kind(n))
}

func (l loader) concurrency(e entry, where string) (int, error) {
	n, err := l.number(e.value, where, 1, 100_000)
	if err == nil && n != math.Trunc(n) {
		err = l.fault(e.value, "%s is %s; use a whole number from 1", where, e.value.String())
	}
	return int(n), err
}
