package sim

import "github.com/spillway-dev/spillway/internal/config/decision"

// rules are those that a manager keeps to. The zero value is all of them.
type rules struct {
	decide func(decision.Observed, decision.Options) decision.Plan
}
