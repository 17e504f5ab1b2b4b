package display

import (
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// Workload writes the facts of a workload.
func Workload(f *Facts, e *config.Explanation) {
	f.row("state", stateText(e))
	if e.Position > 0 {
		f.row("queue", fmt.Sprintf("number %d", e.Position))
	}
	f.optional("progress", e.Progress)
	for _, missing := range e.Missing {
		f.row("missing", missing)
	}
	for _, problem := range e.Problems {
		f.row("problem", problem)
	}
	for _, use := range e.Uses {
		f.row("uses", useText(use))
	}
	if e.LastRoll != nil {
		f.row("last roll", rollText(*e.LastRoll))
	}
	f.optional("hash", e.Hash)
}

func stateText(e *config.Explanation) string {
	if e.Reason == "" {
		return string(e.State)
	}
	return fmt.Sprintf("%s (%s)", e.State, e.Reason)
}

func changedText(changed []string) string {
	if len(changed) == 0 {
		return ", what changed was not seen"
	}
	return ", changed: " + strings.Join(changed, ", ")
}

func useText(use config.UseFact) string {
	text := use.Object
	if len(use.Keys) > 0 {
		text += " (" + strings.Join(use.Keys, ", ") + ")"
	}
	switch {
	case use.Ignored:
		text += ", ignored"
	case !use.Exists && use.Required:
		text += ", missing"
	case !use.Exists:
		text += ", optional, not there"
	}
	return text
}

// rollText says when the hash was last set, and why.
func rollText(r workload.Roll) string {
	if r.Admitted.After(r.At) {
		return r.Admitted.UTC().Format(momentLayout) + ", with a change of the workload itself"
	}
	return r.At.UTC().Format(momentLayout) + changedText(r.Changed)
}
