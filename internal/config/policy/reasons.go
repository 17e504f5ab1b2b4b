package policy

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of a policy's condition, and of what it holds.
const (
	// ReasonInForce: the policy is valid, and what it is for is rolled as it says.
	// Action: nothing, this is the desired state.
	ReasonInForce rollout.Reason = "PolicyInForce"
	// ReasonInvalid: the policy is not valid.
	ReasonInvalid = reasons.Invalid
	// ReasonWindow: no maintenance window of the policy is open.
	ReasonWindow = reasons.OutsideWindow
)
