package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/spelling"
)

// language is one that has an SDK and an example on it in a checkout of callfan.
type language struct {
	name, title string
	// made is what `make languages` makes, below the root of the checkout.
	made []string
	// command runs the example; its paths are below the root.
	command func(root string) ([]string, error)
}

// examples is where the examples of all languages are, below the root.
const examples = "examples/languages"

var languages = []language{
	{
		name: "go", title: "Go",
		made:    []string{examples + "/go/build/greet"},
		command: plain(examples + "/go/build/greet"),
	},
	{
		name: "python", title: "Python",
		made:    []string{"sdk/python/.venv/installed"},
		command: plain("sdk/python/.venv/bin/python", examples+"/python/greet.py"),
	},
	{
		name: "typescript", title: "TypeScript",
		made:    []string{"sdk/typescript/dist/index.js", examples + "/typescript/build/greet.mjs"},
		command: plain("node", examples+"/typescript/build/greet.mjs"),
	},
	{
		name: "java", title: "Java",
		made:    []string{"sdk/java/target/classpath", examples + "/java/build/Greet.class"},
		command: java,
	},
	{
		name: "rust", title: "Rust",
		made:    []string{examples + "/rust/build/greet"},
		command: plain(examples + "/rust/build/greet"),
	},
}

func plain(command ...string) func(string) ([]string, error) {
	return func(string) ([]string, error) { return slices.Clone(command), nil }
}

func java(root string) ([]string, error) {
	libraries, err := os.ReadFile(filepath.Join(root, "sdk/java/target/classpath"))
	if err != nil {
		return nil, err
	}
	path := strings.Join([]string{examples + "/java/build", "sdk/java/target/classes", strings.TrimSpace(string(libraries))}, string(filepath.ListSeparator))
	// A short life: what starts fast.
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "Greet"}, nil
}

// Languages are the names of the languages that the demo knows.
func Languages() []string {
	names := make([]string, len(languages))
	for i, l := range languages {
		names[i] = l.name
	}
	return names
}

// function is the name of the function that the example answers.
func (l language) function() string { return "greet_" + l.name }

// chosen finds languages by their names.
func chosen(names []string) ([]language, error) {
	var list []language
	var errs []error
	for i, name := range names {
		at := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("--languages: %q is none of %s%s", name, strings.Join(Languages(), ", "), meant(name)))
		case slices.Contains(names[:i], name):
			errs = append(errs, fmt.Errorf("--languages: %s is there twice", name))
		default:
			list = append(list, languages[at])
		}
	}
	return list, errors.Join(errs...)
}

func meant(name string) string {
	if near := spelling.Nearest(name, Languages()); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// ErrNoCheckout says that the languages' examples are not at hand.
var ErrNoCheckout = errors.New("--languages runs examples of callfan's repository, and neither the working directory nor one above it is a checkout; " +
	"remedy: clone the repository, run make languages in it, and start the demo there")

// checkout finds the root of the checkout that dir is in.
func checkout(dir string) (string, error) {
	for {
		if _, err := os.Stat(filepath.Join(dir, examples)); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", ErrNoCheckout
		}
		dir = filepath.Dir(dir)
	}
}

// prepared says which of the languages cannot be run yet.
func prepared(root string, list []language) error {
	var errs []error
	for _, l := range list {
		for _, path := range l.made {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				errs = append(errs, fmt.Errorf("%s is not prepared, %s is missing; remedy: make language-%s, or make languages for all of them", l.title, path, l.name))
				break
			}
		}
	}
	return errors.Join(errs...)
}
