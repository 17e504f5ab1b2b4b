// Package lifecycle holds the commands that install, update, upgrade, compare and uninstall
// Instances of packages, those that show and steer their plans, and those that compare revisions
// of workloads that keep their config and return to an earlier one.
//
// # Invariants
//
//   - What the controller would refuse is refused before anything is written, by the same
//     function that the controller asks ([choice.Choose]).
//   - An object that exists with other content is never overwritten.
//   - What a plan would do to the objects of an Instance is shown before it runs ([trial]): nothing is
//     written for that, and objects are rendered by the functions that the controller applies them with.
//   - Values of parameters may be secrets: messages and differences show none that a user
//     has set, and of Secrets only the keys. Manifests that the user asks for show all.
//
// [choice.Choose]: https://pkg.go.dev/github.com/spillway-dev/spillway/internal/plans/choice#Choose
package lifecycle
