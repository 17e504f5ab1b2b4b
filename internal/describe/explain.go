package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// maxLinks bounds a chain. The longest that makes sense, from a module down to the
// manager of the cluster beneath it, has fifteen.
const maxLinks = 24

// World is what [Explain] looks at.
type World struct {
	// Client reads with the caller's own permissions. Nothing is written with it.
	Client client.Client
	// Options are those by which the manager of the config ring decides; its
	// Namespaces and its clock are those of all rings.
	Options config.Options
	// Dial makes a client of the kubeconfig of a cluster of the fleet. If it is nil,
	// chains end where such a cluster begins.
	Dial func(kubeconfig []byte) (client.Client, error)
	// Flags name the cluster, as words of a shell: the commands that come next are to
	// go to the same one. There are none if it is the one that kubectl would take.
	Flags []string
}

// Explain follows what somebody has named down to the root: each link waits for the
// next. It reads single objects on the way, and never goes twice to the same.
func Explain(ctx context.Context, w World, ref Ref) (Chain, error) {
	a := newAsker(w)
	return follow(ctx, &question{asker: a, ref: ref, first: true, answer: a.answers(ref)})
}

// ExplainCluster is [Explain] for one cluster of a module.
func ExplainCluster(ctx context.Context, w World, module Ref, cluster string) (Chain, error) {
	a := newAsker(w)
	return follow(ctx, &question{
		asker: a, ref: Ref{Kind: KindCluster, Namespace: module.Namespace, Name: cluster}, first: true,
		answer: func(ctx context.Context, _ bool) (answer, error) { return a.cluster(ctx, module, cluster) },
	})
}

// asker asks one cluster.
type asker struct {
	World

	// in is the name of the cluster of the fleet that it asks, empty for the one that
	// the caller has named.
	in string
	// first is the command without which others do not get there, empty if they do.
	first string
	// configs is what all links see of the config of workloads.
	configs *configs
}

func newAsker(w World) *asker {
	return &asker{World: w, configs: &configs{}}
}

// question is what to ask next, and whom.
type question struct {
	asker *asker
	ref   Ref
	// first is true of what the caller has named: of that all facts are wanted.
	first  bool
	answer func(ctx context.Context, first bool) (answer, error)
}

// answer is what was found out: at least one link, and where it goes on from there,
// nil at the root.
type answer struct {
	links   []Link
	on      *question
	facts   []Fact
	details any
}

// follow asks until there is nothing more to ask. Where somebody may not look, or nobody
// answers, the chain ends with that; it is an error if nothing at all was found.
func follow(ctx context.Context, q *question) (Chain, error) {
	first, err := q.answer(ctx, q.first)
	if err != nil && (len(first.links) == 0 || ctx.Err() != nil) {
		return Chain{}, err
	}
	chain := Chain{Links: q.links(&first, err), Facts: first.facts, Details: first.details}
	asked := map[Ref]bool{q.asker.at(q.ref): true}
	for next := first.on; err == nil && next != nil && len(chain.Links) < maxLinks && !asked[next.asker.at(next.ref)]; {
		asked[next.asker.at(next.ref)] = true
		var a answer
		a, err = next.answer(ctx, false)
		chain.Links = append(chain.Links, next.links(&a, err)...)
		next = a.on
	}
	return chain, nil
}

// links are those of an answer, with the one where it was cut short.
func (q *question) links(a *answer, err error) []Link {
	if err != nil {
		return append(a.links, q.asker.unseen(q.ref, err))
	}
	return a.links
}

// about asks about an object in the same cluster.
func (a *asker) about(ref Ref) *question {
	return &question{asker: a, ref: ref, answer: a.answers(ref)}
}

// answers is how an object of a kind is asked about.
func (a *asker) answers(ref Ref) func(context.Context, bool) (answer, error) {
	by := map[string]func(context.Context, Ref, bool) (answer, error){
		workloads.Deployment: a.workload, workloads.StatefulSet: a.workload, workloads.DaemonSet: a.workload,
		kindReplicaSet: a.controller, kindJob: a.controller,
		kindPod: a.pod, kindConfigMap: a.configObject, kindSecret: a.configObject, kindClaim: a.claim, kindService: a.service,
		kindPDB: a.disruptionBudget, kindZoneBudget: a.zoneBudget,
		kindGroup: a.group, kindGate: a.gate, kindRevision: a.revision,
		kindInstance: a.instance,
		kindModule:   a.module, kindBootstrap: a.module, kindProxy: a.assemblage, kindRemote: a.assemblage,
		kindKustomization: a.kustomization,
	}
	how, known := by[ref.Kind]
	if !known || isForeign(ref) {
		how = a.object
	}
	return func(ctx context.Context, first bool) (answer, error) { return how(ctx, ref, first) }
}

// at is a reference as seen by whoever asked.
func (a *asker) at(ref Ref) Ref {
	ref.Cluster = a.in
	return ref
}

// link is one with a sentence of its own.
func (a *asker) link(ref Ref, reason rollout.Reason, format string, args ...any) Link {
	return Link{Ref: a.at(ref), Reason: reason, Sentence: a.place() + strings.TrimSuffix(fmt.Sprintf(format, args...), "."), First: a.first}
}

// place begins a sentence about another cluster than the one that was asked.
func (a *asker) place() string {
	if a.in == "" {
		return ""
	}
	return "on cluster " + a.in + ", "
}

// unseen is the end of a chain where the caller cannot look further. What comes next is
// to ask for what was refused, which need not be the object that it is about.
func (a *asker) unseen(ref Ref, err error) Link {
	refused := refusedIn(err)
	if refused == nil || refused.isOf(ref) {
		l := a.link(ref, ReasonUnseen, "%s %s cannot be looked at: %s", ref.Kind, ref.Name, lastOf(err))
		l.Next = a.again(ref)
		return l
	}
	l := a.link(ref, ReasonUnseen, "%s cannot be looked at: %s", refused, lastOf(err))
	l.Next = a.pointless(refused.get(ref.Namespace))
	return l
}

// again is the command that looks at an object, or of what is none the one that looks
// whether anything can be seen.
func (a *asker) again(ref Ref) string {
	if ref.APIVersion == "" && slices.Contains(noObjects, ref.Kind) {
		return a.pointless("spillway check")
	}
	return a.kubectl("get", ref)
}

// lastOf is what the API server has said, without what was wrapped around it.
func lastOf(err error) string {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err.Error()
		}
		err = inner.Unwrap()
	}
}

// kubectl is a command about an object, in the cluster that it is in.
func (a *asker) kubectl(verb string, ref Ref, args ...string) string {
	words := []string{"kubectl", verb, typed(ref)}
	if ref.Namespace != "" {
		words = append(words, "-n", ref.Namespace)
	}
	return strings.Join(slices.Concat(words, args, a.Flags), " ")
}

// typed is how kubectl is told of an object: with its group, where the kind alone could
// be somebody else's.
func typed(ref Ref) string {
	if !isForeign(ref) {
		return ref.String()
	}
	return resourceIn(ref) + "/" + ref.Name
}

// resourceIn is the kind of a reference, as kubectl takes it.
func resourceIn(ref Ref) string {
	kind := strings.ToLower(ref.Kind)
	if isForeign(ref) {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		return kind + "." + group
	}
	return kind
}

// isForeign is true of a kind of somebody else, whatever its name: a Service of Knative
// is none of Kubernetes.
func isForeign(ref Ref) bool {
	group, version, grouped := strings.Cut(ref.APIVersion, "/")
	return grouped && foreign(group, version) != ""
}

// spillway is a command of our own about an object.
func (a *asker) spillway(verb string, ref Ref, args ...string) string {
	words := []string{"spillway", verb, ref.String(), "-n", ref.Namespace}
	return strings.Join(slices.Concat(words, args, a.Flags), " ")
}

// pointless is a command that is about no object in particular. What its output goes
// through knows nothing of clusters.
func (a *asker) pointless(command string) string {
	command, filter, filtered := strings.Cut(command, " | ")
	words := slices.Concat([]string{command}, a.Flags)
	if filtered {
		words = append(words, "|", filter)
	}
	return strings.Join(words, " ")
}

func (a *asker) get(ctx context.Context, ref Ref, obj client.Object) error {
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj); err != nil {
		return fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// refTo names an object that was read.
func refTo(kind string, obj client.Object) Ref {
	return Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
