// Package reasons is the one set of reasons: the words that conditions, Events,
// Holds, the label "reason" of metrics and the commands have in common, each with
// its cause and its fix.
//
// A reason is a constant of type [rollout.Reason], declared beside what it is
// about: the engine's in package rollout, a ring's in the reasons.go of its
// package, and here what more than one ring says. Its comment has one form: the
// cause after the name, then a line that begins with "Action:" and says what a person
// does about it, or "Action: nothing" with why.
//
// Invariants, checked over the syntax tree of all packages by the tests of package
// catalogue:
//
//   - No other word is a reason: what goes into a condition, an Event, a Hold or
//     the label is a constant of the type, never text.
//   - A word is declared once. A package that has its own name for a word of
//     another declares that name as the other constant.
//   - Each has a cause and a fix.
//
// The table behind [Of] and docs/reasons.md are generated from those comments; see
// package catalogue.
package reasons
