// Package wrong breaks each of the rules.
package wrong

import "github.com/spillway-dev/spillway/rollout"

const (
	// ReasonNoAction: it is so.
	ReasonNoAction rollout.Reason = "NoAction" // want "the comment of ReasonNoAction must be"
	// It has another name.
	// Action: nothing.
	ReasonUnnamed rollout.Reason = "Unnamed" // want "the comment of ReasonUnnamed must be"
	// ReasonEmpty: it is so.
	// Action:
	ReasonEmpty  rollout.Reason = "Empty"  // want "the comment of ReasonEmpty must be"
	ReasonSilent rollout.Reason = "Silent" // want "the comment of ReasonSilent must be"
	// ReasonTwice: it is so.
	// Action: nothing.
	ReasonTwice rollout.Reason = "Empty" // want "ReasonTwice is the word .Empty., as wrong.ReasonEmpty is"
	// ReasonUnused: it is so.
	// Action: nothing.
	ReasonUnused rollout.Reason = "Unused" // want "ReasonUnused .Unused. is used nowhere"
	// ReasonPaused is another name of the engine's.
	ReasonPaused = rollout.ReasonPaused
	// ReasonRight: it is
	// so.
	// Action: nothing
	// more.
	ReasonRight = rollout.Reason("Right")
)

const untyped = "Untyped"

var uses = []rollout.Block{
	{Reason: ReasonNoAction}, {Reason: ReasonUnnamed}, {Reason: ReasonEmpty}, {Reason: ReasonSilent}, {Reason: ReasonTwice}, {Reason: ReasonRight},
	{Reason: "Literal"},                   // want ".Literal. is a reason without a constant"
	{Reason: rollout.Reason("Converted")}, // want ".Converted. is a reason without a constant"
	{Reason: ReasonNoAction + "More"},     // want "is a reason without a constant"
	{Reason: untyped},                     // want "is a reason without a constant"
}

func convert(text string, hold rollout.Hold) []rollout.Reason {
	return []rollout.Reason{
		rollout.Reason(text),                // want "text becomes a reason"
		rollout.Reason(string(hold.Reason)), // want "text becomes a reason"
		rollout.Reason(hold.Reason),
	}
}

func is(r rollout.Reason) bool { return r == "" || r == "Compared" } // want ".Compared. is a reason without a constant"
