// Package lint finds what is wrong, contradictory or without effect in manifests,
// before they reach a cluster. It is pure: documents go in, findings come out.
//
// What an annotation or a spec means is decided by the rings' own code: where they
// would stall, or ignore something, there is a finding. Each [Rule] has a code that
// stays what it is, a level, and one small function; rules are listed in rules(), and
// the page docs/lint.md is made from them.
//
// A rule sees all documents at once ([Manifests]). It cannot see the cluster: what is
// not among the documents may well be there, so that alone is never an error.
package lint
