// Package pipe extracts files of a Pod, and makes the Secrets and ConfigMaps that
// keep them: what a Pipe task permits and the ring carries out.
//
// # Invariants
//
//   - At most [MaxFile] bytes of a file are read.
//   - The content of a file is in the object that keeps it, and nowhere else: in no
//     error, log or status.
package pipe
