package explain

import (
	"context"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/explain/native"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
)

// Explain follows an object down to the root cause: each link waits for the next. It
// reads single objects as it follows the chain.
func Explain(ctx context.Context, w chain.World, ref describe.Ref) (chain.Chain, error) {
	return chain.Follow(ctx, newAsker(w).About(ref))
}

// Cluster is [Explain] for one cluster of a module.
func Cluster(ctx context.Context, w chain.World, module describe.Ref, cluster string) (chain.Chain, error) {
	return chain.Follow(ctx, newAsker(w).aboutCluster(module, cluster))
}

// asker asks one cluster about what the rings roll out, and about native objects.
type asker struct {
	native.Asker

	// listed is what the state of config is read from: all links see one moment of it. It is nil until it is needed.
	listed *snapshot.Snapshot
}

func newAsker(w chain.World) *asker {
	a := &asker{}
	a.Asker = native.Asker{Asker: chain.NewAsker(w, a.answers, a.aboutManager)}
	return a
}

// answers is how an object of a kind is asked about.
func (a *asker) answers(ref describe.Ref) chain.AnswerFunc {
	by := map[string]func(context.Context, describe.Ref, bool) (chain.Answer, error){
		workloads.Deployment: a.workload, workloads.StatefulSet: a.workload, workloads.DaemonSet: a.workload,
		describe.KindReplicaSet: a.Controller, describe.KindJob: a.job, describe.KindCronJob: a.cronJob,
		describe.KindPod: a.Pod, describe.KindConfigMap: a.configObject, describe.KindSecret: a.configObject, describe.KindClaim: a.Claim, describe.KindService: a.Service,
		describe.KindPDB: a.DisruptionBudget, describe.KindZoneBudget: a.ZoneBudget,
		describe.KindGroup: a.group, describe.KindGate: a.gate, describe.KindRevision: a.revision,
		describe.KindPolicy: a.policy, describe.KindClusterPolicy: a.policy,
		describe.KindInstance: a.instance,
		describe.KindModule:   a.module, describe.KindBootstrap: a.module, describe.KindProxy: a.assemblage, describe.KindRemote: a.assemblage,
		describe.KindKustomization: a.kustomization,
	}
	how, known := by[ref.Kind]
	if !known || chain.IsForeign(ref) {
		how = a.Object
	}
	return func(ctx context.Context, first bool) (chain.Answer, error) { return how(ctx, ref, first) }
}
