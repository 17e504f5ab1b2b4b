package workload

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// TestAdoption checks what is recorded of a workload after what is recorded, what stands on it, and what it has.
func TestAdoption(t *testing.T) {
	const old, now, other = "old", "now", "other"
	wide := Baseline{Template: old, Scope: other}
	for name, c := range map[string]struct {
		recorded, written Baseline
		template          string
		created           bool // opted in
		hashes            *content.Hashes
		want              Baseline
		accepted          string
	}{
		"nothing":                       {template: old, hashes: &content.Hashes{Desired: now}, accepted: old},
		"a hash of wave":                {template: old, hashes: &content.Hashes{Desired: now, Wave: old}, want: Baseline{Template: old, Scope: now}, accepted: old},
		"recorded":                      {recorded: wide, template: old, hashes: &content.Hashes{Desired: now, Wave: old}, want: wide, accepted: other},
		"recorded, and not read yet":    {recorded: wide, template: old, want: wide, accepted: other},
		"written by an earlier":         {written: wide, template: old, hashes: &content.Hashes{Desired: now, Wave: old}, want: wide, accepted: other},
		"forged":                        {recorded: wide, written: Baseline{Template: old, Scope: now}, template: old, hashes: &content.Hashes{Desired: now}, want: wide, accepted: other},
		"with another hash":             {recorded: wide, template: now, hashes: &content.Hashes{Desired: now}, want: wide, accepted: now},
		"the hash means what it says":   {recorded: wide, template: old, hashes: &content.Hashes{Desired: old}, accepted: other},
		"without a hash":                {recorded: Baseline{Scope: other, First: other}, hashes: &content.Hashes{Desired: now}, want: Baseline{Scope: other, First: other}, accepted: other},
		"without a hash until a roll":   {recorded: Baseline{Scope: other, First: other}, template: now, hashes: &content.Hashes{Desired: now}, accepted: now},
		"without a hash, and created":   {recorded: Baseline{Scope: other, First: other}, created: true, hashes: &content.Hashes{Desired: now}},
		"more is ignored than before":   {recorded: Baseline{Scope: other, First: other}, hashes: &content.Hashes{Desired: now, Unignored: other}, want: Baseline{Scope: now, First: other}, accepted: other},
		"it is for the first time seen": {hashes: &content.Hashes{Desired: now}, want: Baseline{Scope: now, First: now}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Workload{Settings: Settings{Tracked: true}, Template: Template{Hash: c.template}, Hashes: c.hashes, isLater: !c.created}
			w.Records.Baseline = c.written
			w.Adopt(c.recorded)
			if got := w.Adoption(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got := w.Accepted(); got != c.accepted || w.Demand.First != (got == "") {
				t.Errorf("accepts %q, want %q", got, c.accepted)
			}
		})
	}
}
