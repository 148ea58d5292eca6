package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

//go:embed tools.zh.json tools.en.json
var files embed.FS

// tool is what the model is told of a function.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// register declares the functions in a language.
func register(ex *executor.Executor, lang string) error {
	a, ok := assistants[lang]
	if !ok {
		return fmt.Errorf("-lang is %q; use zh or en", lang)
	}
	body, err := files.ReadFile("tools." + lang + ".json")
	if err != nil {
		return err
	}
	var tools []tool
	if err := json.Unmarshal(body, &tools); err != nil {
		return err
	}
	options := map[string][]executor.Option{}
	for _, t := range tools {
		options[t.Name] = []executor.Option{
			executor.WithDescription(t.Description), executor.WithParameters(t.Parameters),
			executor.WithEffects(call.EffectsNone), // safe to run again after a crash
		}
	}
	return errors.Join(
		executor.Handle(ex, "get_weather", a.getWeather, options["get_weather"]...),
		executor.Handle(ex, "calculate", a.calculate, options["calculate"]...),
		executor.Handle(ex, "get_time", a.getTime, options["get_time"]...),
	)
}
