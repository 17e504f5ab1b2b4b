// Package packages reads a package of KUDO, that is operator.yaml, params.yaml and templates/,
// from a folder or an archive (.tgz). From it, it builds the two objects that are installed in
// a cluster: an Operator and an OperatorVersion.
//
// A package may come from anywhere. So the number and the size of its files are limited before
// any content is kept, and no path leads out of it. Reading writes nothing to a disk, and
// archives are never unpacked there; only [Package.Rewrite] changes files, those of a folder.
package packages
