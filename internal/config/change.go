package config

import (
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// coalesceLimit bounds, in windows, how long an unending series of changes can
// delay a roll.
const coalesceLimit = 10

// Change is a change of config that was observed and not rolled yet.
type Change struct {
	// First and Last bound the changes; zero if none was observed.
	First, Last time.Time
	// Keys are what changed: "ConfigMap app: LOG_LEVEL". Nil if not known.
	Keys []string
}

// settlesAt is when a change may be acted upon: when it has been the last one
// for a window, at the latest coalesceLimit windows after the first.
func (c *Change) settlesAt(window time.Duration) time.Time {
	quiet, limit := c.Last.Add(window), c.First.Add(coalesceLimit*window)
	if limit.Before(quiet) {
		return limit
	}
	return quiet
}

// changes are what was observed to change in the config of one workload since it
// was up to date.
type changes struct {
	// settled are the facts when the workload was up to date.
	settled content.Facts
	pending Change
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
func (c *changes) settle(facts content.Facts) { c.settled, c.pending = facts, Change{} }
