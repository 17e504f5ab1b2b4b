// Package origin reads a package from where the user says that it is: a directory, an
// archive (.tgz), an address (http, https), an OCI artifact (oci://), or a repository of
// packages.
//
// What is downloaded is bounded in size, held in memory, and never written to a disk.
package origin
