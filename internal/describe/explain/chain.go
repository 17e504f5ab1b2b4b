package explain

import (
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// Chain is the answer to "why": from what was asked for down to the root. The first
// link is what was asked for; each waits for the one after it. There is always one.
type Chain struct {
	Links []Link `json:"links"`
	// Facts are what else is to be known of the first, in the order to show them.
	Facts []describe.Fact `json:"facts,omitempty"`
	// Details is the ring's own word, for machines.
	Details any `json:"details,omitempty"`
}

// Root is the last link: what has to change before the rest can go on.
func (c *Chain) Root() *Link { return &c.Links[len(c.Links)-1] }

// Deadline is when the first of them counts as failed that ever does, nil if none does.
func (c *Chain) Deadline() *time.Time {
	for i := range c.Links {
		if c.Links[i].Deadline != nil {
			return c.Links[i].Deadline
		}
	}
	return nil
}

// Link is one of them.
type Link struct {
	describe.Ref

	// Ring is the one that says it; empty for the word of Kubernetes.
	Ring string `json:"ring,omitempty"`
	// Phase is empty of what has none, such as a missing Secret.
	Phase    rollout.Phase  `json:"phase,omitempty"`
	Reason   rollout.Reason `json:"reason,omitempty"`
	Sentence string         `json:"sentence"`
	Since    *time.Time     `json:"since,omitempty"`
	Until    *time.Time     `json:"until,omitempty"`
	// Deadline is when it counts as failed, nil if it never does or that is not known.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Owner is who has it in hand: the person who paused it, the holder of the lock,
	// the workload that the Pod belongs to.
	Owner string `json:"owner,omitempty"`
	// First is the command that makes a file which Next reads, empty if it reads none.
	First string `json:"first,omitempty"`
	// Next is the exact command that comes next, empty if there is nothing to do but
	// to wait.
	Next string `json:"next,omitempty"`
}
