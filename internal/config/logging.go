package config

import (
	"io"
	"log/slog"
)

// Logging holds the flags for logging.
type Logging struct {
	LogFormat string     `help:"Format of the log: text or json." enum:"text,json" default:"text" env:"CALLFAN_LOG_FORMAT" group:"Logging"`
	LogLevel  slog.Level `help:"Least level that is logged: debug, info, warn or error." default:"info" env:"CALLFAN_LOG_LEVEL" group:"Logging"`
}

// Logger writes to w as the flags say.
func (l Logging) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.LogLevel}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
