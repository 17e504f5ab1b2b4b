// Package workload reads the workloads that use config: what their annotations
// ask for, what their Pod template has, and what was recorded on them. It also
// builds the patches that change them.
//
// Invariants:
//
//   - What is read follows from the manifest alone; [Workload.Observe] adds what is
//     known of the config.
//   - A patch contains its preconditions as test operations: the API server refuses
//     it once they no longer hold.
//   - A mistake in an annotation makes that setting ineffective, and no other.
package workload
