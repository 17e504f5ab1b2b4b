// Package assemblage is the code that the controllers of assemblages share, and has no
// controller of its own. Package agent makes what is assigned into objects of Flux, and package
// proxy sends it to a workload cluster. On a workload cluster, --rings=assemblage runs package
// agent; on the hub, --rings=fleet runs both, agent for RemoteAssemblages.
//
// # Invariants
//
//   - Before anything is written, the API server confirms that the assemblage is unchanged
//     since it was observed.
//   - A write that is refused for one sync does not stop the others, and the status of the
//     same pass says what was refused.
//   - The status is written with the resourceVersion that was read, once a pass, and only
//     if it differs. It is not written in a pass that writes the assemblage itself. Where
//     it says that something begins, it comes first and is the confirmation; then a refusal
//     has it written a second time.
//   - An assemblage that only Spillway has written, and that has no syncs any more, is
//     deleted (retired). That is found out from its managed fields.
package assemblage
