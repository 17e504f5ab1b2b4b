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
	// ReasonPinsMissing: workloads that the policy is for do not keep their config, so that its
	// pinConfig or onFailure: Rollback has no effect on them. The rest of it is in force.
	// Action: set pinConfig: true, or install with --pin-namespaces as the message says. Leave
	// out workloads that are not to have pins by spillway.dev/pin-config: "false".
	ReasonPinsMissing rollout.Reason = "PinsMissing"
	// ReasonInvalid: the policy is not valid.
	ReasonInvalid = reasons.Invalid
	// ReasonWindow: no maintenance window of the policy is open.
	ReasonWindow = reasons.OutsideWindow
)
