// Package catalogue reads the sources of the module and finds every reason: the
// constants of type [rollout.Reason], with the cause and the fix from their
// comments, and where each is shown. It writes docs/reasons.md and the table of
// package reasons, and finds what breaks the rules that the doc of that package
// states.
//
// Where a reason is shown follows from how values flow: from a constant through
// variables, fields, parameters and results to a condition, an Event, a Hold or the
// label of a metric. The flow takes in the engine and the packages that mention the
// constant, and does not tell one value of a struct from another; so it may say too
// much, never too little, of packages that hand reasons on as values.
//
// It is for tests and for make generate alone: the binary has the table.
package catalogue
