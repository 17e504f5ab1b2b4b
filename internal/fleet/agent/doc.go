// Package agent makes what is assigned to a cluster run there: each sync of an
// assemblage becomes a source and a Kustomization of Flux, or a source, a HelmChart and a
// HelmRelease. All that is said of a Kustomization below is true of a HelmRelease. What it shares with package proxy
// is in package assemblage, which has no controller.
//
// It has two controllers that differ only in where Flux applies. An Assemblage is on
// a workload cluster, and so is the Flux that applies it. A RemoteAssemblage is on
// the hub, whose Flux is applying it to a cluster with the kubeconfig of that. A user
// with a rollout of their own writes assemblages and reads their status; this package
// does not know of modules.
//
// # Invariants
//
//   - What a sync is made into follows from the assemblage, from what its bindings
//     refer to, and from nothing else.
//   - Names do not depend on the order of syncs. They are the Kustomization
//     ASSEMBLAGE-SYNC, on the hub SYNC-ASSEMBLAGE, and the source SYNC-HASH, with a
//     hash of what it fetches. Where one of the two has a hyphen there are two between
//     them, so that no other two have the name. A name that would be too long ends with
//     a hash of all of it.
//   - A Kustomization keeps its name as long as there is one.
//   - A source never changes: another version is another source. So assemblages at
//     different revisions do not disturb each other, and those at the same one share
//     it. A source that nothing fetches from, or is about to, is collected.
//   - A sync whose bindings cannot be evaluated stays as it is, whatever else the
//     assemblage says about it, but for what becomes of what runs when it is removed:
//     that is set on the Kustomization immediately. The others go on.
//   - The status says that what runs stays when a sync is removed once the
//     Kustomization says so, and not before.
//   - A HelmRelease that is to leave what it has installed is seen to be suspended before it is
//     deleted. One that is wanted again meanwhile is resumed.
//   - What depends on one of the other kind is not applied before that is ready, and not deleted
//     after it.
//   - An object that has the name that it needs and another owner is left alone.
//   - Before it writes, the API server confirms that the assemblage is unchanged since
//     it was observed. A delete carries the UID that was observed.
//   - A Kustomization is deleted before the assemblage goes, and the assemblage goes
//     when Flux has taken away what it had applied.
//   - Converged, nothing is written.
//
// # When a sync has settled, and when it has succeeded
//
// It has settled when the source has fetched what is wanted, the Kustomization is
// what is wanted, and its condition Ready is not Unknown and speaks of its present
// generation. (Its status.observedGeneration stays behind when something fails, so
// that it tells nothing of failures.) It has succeeded when besides Ready is True
// and status.lastAppliedRevision is the revision of the source's artifact. So an
// older success is never taken for one of this revision.
//
// A HelmRelease has succeeded when besides its condition the newest release of Helm is deployed,
// with the chart and the values that were attempted last, for the present generation. A release
// that was rolled back is none of these. It has failed, whatever may follow, when Flux has stalled.
//
// Flux reconciles at each interval, and reports Unknown while it does. A sync that had
// succeeded, or failed, is still said to have until there is something new to say.
//
// That a cluster does not answer looks to Flux like a manifest that it cannot apply.
// So the hub probes the cluster after the failure, before it reports it.
//
// # Why
//
// A source that is edited moves every cluster at the same time, and an old success of it
// counts for a new revision. So another version is another source, and the one write that
// points a Kustomization at it moves one cluster.
package agent
