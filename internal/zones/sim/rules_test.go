package sim

import "github.com/spillway-dev/spillway/internal/zones"

// rules are those that a manager keeps to. The zero value but for plan is all of
// them; the others are broken on purpose.
type rules struct {
	plan func(zones.Observed) zones.Plan
	// unconditional writes carry no preconditions.
	unconditional bool
	// overwrites the status whoever has written it meanwhile.
	overwrites bool
	// late acts upon moves however old they are.
	late bool
	// trusting takes a cache for good enough where the plan asks for a live look.
	trusting bool
	// ageless does not know how old its views are.
	ageless bool
}

func allRules() *rules { return &rules{plan: zones.Decide} }
