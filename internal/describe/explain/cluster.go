package explain

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// aboutCluster asks about one cluster of a module.
func (a *asker) aboutCluster(module describe.Ref, name string) *question {
	return a.ask(describe.Ref{Kind: describe.KindCluster, Namespace: module.Namespace, Name: name}, func(ctx context.Context, _ bool) (answer, error) {
		return a.cluster(ctx, module, name)
	})
}

// cluster is one cluster of a module.
func (a *asker) cluster(ctx context.Context, module describe.Ref, name string) (answer, error) {
	c, err := hub.ExplainCluster(ctx, a.Client, module.Kind, keyOf(module), name)
	if err != nil {
		return answer{}, err
	}
	ref := describe.Ref{Kind: describe.KindCluster, Namespace: module.Namespace, Name: name}
	link := a.link(ref, c.Reason, "%s", clusterSentence(&c))
	link.Ring, link.Phase, link.Since, link.Until = manager.RingFleet, rollout.PhaseWaiting, c.Since, c.Until
	m := moduleAnswer{answering: answering{a, module, answer{Links: []Link{link}, Facts: describe.ClusterFacts(&c), Details: c}}}
	switch {
	case c.Hold != nil:
		m.own().Owner, m.own().Phase, m.own().Next = c.Hold.By, rollout.PhasePaused, m.fleet("unpin", "--cluster", name)
	case c.OnCluster != "" && c.OnCluster != name:
		m.found.Then = m.aboutCluster(m.ref, c.OnCluster)
	case c.OnStage != "" || slices.Contains(ofModule, c.Reason):
		m.found.Then = a.about(module)
	case c.Reason == decision.ReasonForeign:
		m.own().Next = a.command("kubectl get " + strings.ToLower(describe.AssemblageKind(module.Kind)) + "s " + shell.Join("-n", module.Namespace))
	case c.Reason == outcome.ReasonUnreachable && c.Revision == "": // nothing is assigned before it is known what it has
		m.add(a.unreachable(ref, &describe.Assemblage{Cluster: name, Secret: cluster.SecretName(name)}))
	case c.IsNext:
		m.found.Then = a.aboutManager(module.Namespace)
	case c.Reason == "" && c.Revision != c.Target && c.Target != "": // nothing more is assigned at present
		m.found.Then = a.about(module)
	case c.Revision == "" && c.Reason == "":
		m.own().Next = a.unowned(ctx, &c, ref)
	case c.Reason == "" && c.State == fleetv1.StateSucceeded:
		m.own().Phase = rollout.PhaseComplete
	case c.Revision != "":
		m.found.Then = a.assigned(module, name)
	}
	return m.found, nil
}

// ofModule are reasons for which a cluster waits with the whole of its module, or of its
// stage.
var ofModule = []rollout.Reason{
	rollout.ReasonPaused, rollout.ReasonGate, rollout.ReasonGateRefused, rollout.ReasonRemovalApproval, decision.ReasonWindow, decision.ReasonInvalid, decision.ReasonRevision, decision.ReasonUnresolved,
}

// unowned is how to see why a cluster is none of a module's.
func (a *asker) unowned(ctx context.Context, c *decision.ClusterExplanation, ref describe.Ref) string {
	switch {
	case c.Of.Kind == "" && a.hasClusterAPI(ctx, ref.Namespace):
		return a.command("kubectl get clusters." + cluster.GVK.Group + " " + shell.Join("-n", ref.Namespace))
	case c.Of.Kind == "":
		return a.command("kubectl get secrets " + shell.Join("-n", ref.Namespace) + " -l " + vocabulary.Cluster.Native + "=true")
	}
	stands := describe.Ref{Kind: c.Of.Kind, Namespace: ref.Namespace, Name: ref.Name, APIVersion: c.Of.APIVersion}
	if c.Of.Kind == describe.KindSecret {
		stands.Name = cluster.SecretName(ref.Name)
	}
	switch {
	case c.Deleting:
		return a.kubectl("get", stands, "-o", "jsonpath={.metadata.finalizers}")
	case c.Selected: // and not ready
		return a.kubectl("describe", stands)
	default:
		return a.kubectl("get", stands, "--show-labels")
	}
}

// hasClusterAPI is true if Cluster API keeps clusters in a namespace.
func (a *asker) hasClusterAPI(ctx context.Context, namespace string) bool {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(cluster.GVK)
	err := a.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	return err == nil && len(list.Items) > 0
}

// clusterSentence names the cluster also where it waits with its whole stage.
func clusterSentence(c *decision.ClusterExplanation) string {
	sentence := strings.TrimSuffix(c.Sentence, ".")
	if c.Stage != "" && !strings.HasPrefix(sentence, c.Name+" ") {
		return c.Name + ": " + sentence
	}
	return sentence
}
