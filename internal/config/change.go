package config

import (
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
)

// changes are what was observed to change in the config of one workload since it
// was up to date.
type changes struct {
	// settled are the facts when the workload was up to date.
	settled content.Facts
	pending decision.Change
}

// saw records a change to these facts.
func (c *changes) saw(now time.Time, namespace string, facts content.Facts) {
	if c.pending.First.IsZero() {
		c.pending.First = now
	}
	c.pending.Last = now
	c.pending.Keys = facts.ChangedSince(namespace, c.settled)
}

// settle records that the workload is up to date: the next change is compared with
// these facts.
func (c *changes) settle(facts content.Facts) { c.settled, c.pending = facts, decision.Change{} }
