// Package metrics declares all metrics of the manager.
//
// # Invariants
//
//   - Every metric that Spillway registers is declared here, and nowhere else: the page
//     docs/metrics.md, the dashboards and the alerts are generated from the list.
//   - Names, types and labels are an interface: testdata/interface.txt has them, and a test
//     fails if one changes. ADR 48 says in which version that is allowed.
//   - The values of a label are bounded: by what is rolled out, or by a table of the program.
//
// # Why
//
// Outcomes are counted where a history in a status says something that it did not say before
// the write, so that each is counted once, whichever manager leads. Moments are timestamps:
// time() - x is right between two passes, too.
package metrics
