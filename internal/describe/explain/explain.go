package explain

import (
	"context"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
)

// Explain follows an object down to the root cause: each link waits for the next. It
// reads single objects as it follows the chain.
func Explain(ctx context.Context, w World, ref describe.Ref) (Chain, error) {
	return follow(ctx, (&asker{World: w}).about(ref))
}

// Cluster is [Explain] for one cluster of a module.
func Cluster(ctx context.Context, w World, module describe.Ref, cluster string) (Chain, error) {
	return follow(ctx, (&asker{World: w}).aboutCluster(module, cluster))
}

// answers is how an object of a kind is asked about.
func (a *asker) answers(ref describe.Ref) answerFunc {
	by := map[string]func(context.Context, describe.Ref, bool) (answer, error){
		workloads.Deployment: a.workload, workloads.StatefulSet: a.workload, workloads.DaemonSet: a.workload,
		describe.KindReplicaSet: a.controller, describe.KindJob: a.job, describe.KindCronJob: a.cronJob,
		describe.KindPod: a.pod, describe.KindConfigMap: a.configObject, describe.KindSecret: a.configObject, describe.KindClaim: a.claim, describe.KindService: a.service,
		describe.KindPDB: a.disruptionBudget, describe.KindZoneBudget: a.zoneBudget,
		describe.KindGroup: a.group, describe.KindGate: a.gate, describe.KindRevision: a.revision,
		describe.KindPolicy: a.policy, describe.KindClusterPolicy: a.policy,
		describe.KindInstance: a.instance,
		describe.KindModule:   a.module, describe.KindBootstrap: a.module, describe.KindProxy: a.assemblage, describe.KindRemote: a.assemblage,
		describe.KindKustomization: a.kustomization,
	}
	how, known := by[ref.Kind]
	if !known || isForeign(ref) {
		how = a.object
	}
	return func(ctx context.Context, first bool) (answer, error) { return how(ctx, ref, first) }
}
