// Package preparation labels the namespaces in which the API server asks the manager about
// Scales: those with a StatefulSet whose Pods must be prepared before they are removed. It
// calls no Pod; package preparehook does that, and writes no object.
//
// A Scale does not have the labels of its StatefulSet, so that only its namespace can tell
// whether the answer matters. While no manager answers, no Scale is lowered in a namespace
// with the label; elsewhere, none is kept from being lowered but those of such
// StatefulSets, by a policy. Webhook and policy select by the same label, so that one
// write changes over from one to the other: there is no moment without either.
//
// The other label is of the namespaces with a ZoneAwarePodDisruptionBudget: there a policy without
// parameters refuses evictions that no webhook has answered, because the budgets as parameters are
// not known to an API server that has just started. While their kind is not known, the label stays.
//
// What the labels must be follows from the StatefulSets and budgets of the namespace alone. They are
// compared with the namespace as the API server has it, when such a StatefulSet comes or
// goes, and once for each namespace with StatefulSets after a start.
//
// # Why
//
// What a webhook adds to a Scale is gone before policies see it, so a mark, as for evictions,
// does not work. A policy whose parameters are StatefulSets fails open: an API server stops to
// watch a built-in kind that no binding has named for a second (kubernetes#130887).
package preparation
