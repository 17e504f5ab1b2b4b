package ops

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/message"
)

// newLog is a structured log that a person can read.
func newLog(w io.Writer, format, level string) (logr.Logger, error) {
	options := &slog.HandlerOptions{ReplaceAttr: shorten}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %q is not known; use debug, info, warn or error", level)
	}
	options.Level = l
	if l == slog.LevelDebug {
		options.Level = slog.Level(-1) // what the rings tell beyond info is at V(1)
	}
	switch format {
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(w, options)), nil
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(w, options)), nil
	default:
		return logr.Logger{}, fmt.Errorf("--log-format: %q is not known; use text or json", format)
	}
}

// shorten leaves out of each line what says nothing: there is one request for
// all workloads, and its name is no news. What users have written may be in any value,
// also in the answer of an API server, and is cut.
func shorten(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "reconcileID", "controllerGroup", "controllerKind":
		return slog.Attr{}
	case slog.LevelKey:
		return slog.String(a.Key, strings.SplitN(a.Value.String(), "+", 2)[0])
	}
	if text, ok := textOf(a.Value); ok && len(text) > message.SentenceLength {
		return slog.String(a.Key, message.Sentence(text))
	}
	return a
}

// textOf returns what is written of a value, false for one that is never long.
func textOf(v slog.Value) (text string, ok bool) {
	if v.Kind() == slog.KindString {
		return v.String(), true
	}
	switch value := v.Any().(type) {
	case error:
		return value.Error(), true
	case fmt.Stringer: // such as a namespaced name
		return value.String(), v.Kind() == slog.KindAny
	default:
		return "", false
	}
}
