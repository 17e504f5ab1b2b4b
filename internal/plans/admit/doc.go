// Package admit guards Instances at admission: a ValidatingAdmissionPolicy, and a webhook
// for what needs the OperatorVersion.
//
// # Invariants
//
//   - Admission decides nothing: what it refuses the controller would refuse as well
//     ([choice.Choose]), and a webhook that does not answer changes nothing that runs.
//   - No write of metadata or status is refused, and none that leaves the spec as it was.
//   - A mistake that existed before does not prevent another change.
package admit
