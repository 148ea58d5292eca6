package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"

	"github.com/alecthomas/kong"
)

// ErrDone is returned by Parse when help or the version was asked for and printed:
// there is nothing more to do, and nothing went wrong.
var ErrDone = errors.New("done")

// Program describes a program to Parse.
type Program struct {
	// Name and Description start the help.
	Name, Description string
	// Version is what --version prints.
	Version string
	// Stdout gets help and version. Required.
	Stdout io.Writer
	// Options are further options of the parser.
	Options []kong.Option
}

// Parse fills settings, a pointer to a struct with kong's tags, from args, the
// environment, the file and the defaults, in this order of precedence. settings
// usually embeds Common, which brings --config, --help and --version, and Logging.
//
// Errors are about the user's input, and name where the value came from. None
// repeats a secret. ErrDone says that help or version was printed.
func Parse(program Program, settings any, args []string) (*kong.Context, error) {
	parser, err := newParser(program, settings)
	if err != nil {
		return nil, err
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		if cause, ok := errors.AsType[*kong.ParseError](err); ok {
			err = cause.Unwrap()
		}
		return nil, err
	}
	return ctx, finish(ctx)
}

func newParser(program Program, settings any) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name(program.Name),
		kong.Description(program.Description),
		kong.Writers(program.Stdout, io.Discard),
		kong.NoDefaultHelp(),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110}),
		kong.Vars{"version": program.Version},
	}
	parser, err := kong.New(settings, append(options, program.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return parser, nil
}

// finish reads the secrets and checks what the parser cannot know.
func finish(ctx *kong.Context) error {
	var errs []error
	for _, flag := range ctx.Flags() {
		from := sourceOf(ctx, flag)
		switch target := flag.Target.Addr().Interface().(type) {
		case *Secret:
			errs = append(errs, target.load(flag, from))
		case *Address:
			errs = append(errs, target.check(flag, from))
		default:
			errs = append(errs, checkNumber(flag))
		}
	}
	return errors.Join(errs...)
}

// checkNumber refuses negative numbers and times, and zero unless the tag zero:""
// says that it means something: to the parts behind, zero means the default.
func checkNumber(flag *kong.Flag) error {
	if !flag.Target.CanInt() || flag.Target.Type() == reflect.TypeFor[slog.Level]() {
		return nil
	}
	switch n := flag.Target.Int(); {
	case n < 0:
		return fmt.Errorf("--%s: must not be negative", flag.Name)
	case n == 0 && !flag.Tag.Has("zero"):
		return fmt.Errorf("--%s: must be more than zero", flag.Name)
	}
	return nil
}

// source says where the value of a flag came from.
type source int

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromFlag
)

func sourceOf(ctx *kong.Context, flag *kong.Flag) source {
	for _, path := range ctx.Path {
		if path.Flag == flag && !path.Resolved {
			return fromFlag
		}
	}
	if environment(flag) {
		return fromEnvironment
	}
	for _, path := range ctx.Path {
		if path.Flag == flag {
			return fromFile
		}
	}
	return fromDefault
}

// Common holds the flags of every program, beside Logging.
type Common struct {
	Config  File        `help:"Read settings from this YAML file; its keys are the names of the flags." placeholder:"FILE" env:"CALLFAN_CONFIG"`
	Help    helpFlag    `help:"Print this help." short:"h"`
	Version versionFlag `help:"Print the version."`
}

type helpFlag bool

// BeforeReset prints the help and ends parsing.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return ErrDone
}

type versionFlag bool

// BeforeReset prints the version and ends parsing.
func (versionFlag) BeforeReset(ctx *kong.Context, vars kong.Vars) error {
	fmt.Fprintln(ctx.Stdout, vars["version"])
	return ErrDone
}
