// Package reasons is the one set of reasons: the words that conditions, Events,
// Holds, the label "reason" of metrics and the commands have in common, each with
// its cause and its action.
//
// A reason is a constant of type [rollout.Reason], declared beside what it is
// about: the engine's in package rollout, a ring's in the reasons.go of its
// package, and here those of more than one ring. Its comment has one form: the
// cause after the name, then a line that begins with "Action:" and says what a person
// does about it, or "Action: nothing" and why.
//
// Invariants:
//
//   - No other word is a reason: a condition, an Event, a Hold and the label take a
//     constant of the type, never text.
//   - A word is declared once. A package that has its own name for a word of
//     another declares that name as the other constant.
//   - Each has a cause and an action, and some code uses it.
//
// hack/reasons reads the constants, refuses what breaks these rules, and generates
// the table behind [Of] and docs/reasons.md from the comments. A constant of the type
// can be converted to text and shown in a field that takes any text: that such a field
// has no other word is checked at run time, see testenv.KnownReasons.
package reasons
