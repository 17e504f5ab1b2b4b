// Package packages reads a package of KUDO, that is operator.yaml, params.yaml and templates/,
// from a folder or an archive (.tgz). From it, it builds the two objects that are installed in
// a cluster: an Operator and an OperatorVersion.
//
// A package may come from anywhere. So the number and the size of its files are limited before
// any content is kept, and no path leads out of it. Reading writes nothing to a disk, and
// archives are never unpacked there; only [Package.Rewrite] changes files, those of a folder.
//
// # Why
//
//   - No repository is configured, because KUDO's is no longer maintained, and a program does
//     not contact a host that its user did not name.
//   - What is written for a package has the fields that KUDO writes, and values of parameters
//     are compared by what they mean: KUDO writes lists as YAML. So packages that KUDO has
//     installed are upgraded and not refused. An object that a plan deletes first is not
//     compared with what it is now.
//   - What a package needs is pinned when it is installed, so that what was checked is what
//     runs.
package packages
