package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Model is the program's settings as the parser sees them.
func Model(program Program, settings any) (*kong.Application, error) {
	parser, err := newParser(program, settings)
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}

// Reference is the list of a program's settings in Markdown, a table for each group.
func Reference(model *kong.Application) string {
	var out strings.Builder
	group := "-"
	for _, flag := range model.Flags {
		if flag.Hidden {
			continue
		}
		title := "General"
		if flag.Group != nil {
			title = flag.Group.Key
		}
		if title != group {
			group = title
			fmt.Fprintf(&out, "\n### %s\n\n| flag | environment | key in the file | default | |\n|---|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", code("--"+flag.Name), variables(flag), key(flag), code(defaultOf(flag)), cell(flag.Help))
	}
	return strings.TrimPrefix(out.String(), "\n")
}

func variables(flag *kong.Flag) string {
	names := make([]string, 0, 2)
	for _, name := range flag.Envs {
		names = append(names, code(name))
	}
	if secret := flag.Tag.Get("secret"); secret != "" {
		names = append(names, code(secret)+" (the secret itself)")
	}
	return strings.Join(names, ", ")
}

func key(flag *kong.Flag) string {
	if onlyOnCommandLine(flag) {
		return ""
	}
	return code(flag.Name)
}

func defaultOf(flag *kong.Flag) string {
	if flag.Default == "0" && flag.Tag.Has("zero") {
		return "0"
	}
	return cmp.Or(flag.Default, "")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
