// Package lint finds what is wrong, contradictory or without effect in manifests,
// before they reach a cluster. It is pure: documents go in, findings come out.
//
// The settings of annotations and specs are parsed by the rings' own code: where a ring
// would stall, or ignore something, there is a finding. Each rule has a code that never
// changes its meaning, a level, and one small function; package rules lists them, and
// the page docs/lint.md is generated from them.
//
// A rule sees all documents together ([manifest.Manifests]). It cannot see the cluster:
// an object that is not among the documents may exist there, so that alone is never an
// error.
//
// # Why
//
// The schemas of the kinds are checked by the validator of the API server. Their rules in CEL
// are not: the evaluator is fifty packages more, for what the API server says in the same
// words a moment later. Queries of gates are read by the parser of Prometheus with all its
// options, because a server may allow what others do not. A measurement sends the query as it
// is.
package lint
