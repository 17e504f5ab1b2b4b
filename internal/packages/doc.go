// Package packages reads applications in the format of KUDO: operator.yaml, params.yaml and
// templates/, in a folder or in an archive (.tgz), and makes of them the objects that are
// installed.
//
// What is read may come from anywhere, so an archive is bounded in the number of its files
// and in their size before any of it is kept, and names nothing outside of itself. Nothing is
// ever written to a disk.
package packages
