package notify

import "github.com/spillway-dev/spillway/rollout"

// The reasons of the conditions of Notifiers, and of their Events.
const (
	// ReasonNotifying: the Notifier sends its messages.
	// Action: nothing, this is the desired state.
	ReasonNotifying rollout.Reason = "Notifying"
	// ReasonDeliveryFailed: the receiver of a Notifier does not accept a message, or cannot be
	// reached.
	// Action: correct the Secret or the receiver as the message says; messages are kept and
	// sent again automatically, within five minutes.
	ReasonDeliveryFailed rollout.Reason = "DeliveryFailed"
	// ReasonInvalidFilter: spec.filter of a Notifier is not a valid CEL expression, so no
	// new messages are sent.
	// Action: correct spec.filter as the message says.
	ReasonInvalidFilter rollout.Reason = "InvalidFilter"
	// EventSilenceFailed: an Alertmanager does not accept a silence, or cannot be reached, so
	// alerts about a zone that is down on purpose may fire.
	// Action: correct the Secret or the Alertmanager as the message says; silences are renewed
	// each minute, and one that could not be ended lapses within three.
	EventSilenceFailed rollout.Reason = "SilenceFailed"
	// EventDropped: messages of a Notifier are discarded and never sent: too many were
	// pending, or the receiver has rejected one several times.
	// Action: correct what the condition Ready says; spillway history shows the rollouts
	// whose messages are missing.
	EventDropped rollout.Reason = "MessagesDropped"
)
