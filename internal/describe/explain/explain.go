package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
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

// Chain is the answer to "why": from what was asked for down to the root. The first
// link is what was asked for; each waits for the one after it. There is always one.
type Chain struct {
	Links []Link `json:"links"`
	// Facts are what else is to be known of the first, in the order to show them.
	Facts []describe.Fact `json:"facts,omitempty"`
	// Details is the ring's own word, for machines.
	Details any `json:"details,omitempty"`
}

// Root is the last link: what has to change before the rest can go on.
func (c *Chain) Root() *Link { return &c.Links[len(c.Links)-1] }

// Deadline is when the first of them counts as failed that ever does, nil if none does.
func (c *Chain) Deadline() *time.Time {
	for i := range c.Links {
		if c.Links[i].Deadline != nil {
			return c.Links[i].Deadline
		}
	}
	return nil
}

// Link is one of them.
type Link struct {
	describe.Ref

	// Ring is the one that says it; empty for the word of Kubernetes.
	Ring string `json:"ring,omitempty"`
	// Phase is empty of what has none, such as a missing Secret.
	Phase    rollout.Phase  `json:"phase,omitempty"`
	Reason   rollout.Reason `json:"reason,omitempty"`
	Sentence string         `json:"sentence"`
	Since    *time.Time     `json:"since,omitempty"`
	Until    *time.Time     `json:"until,omitempty"`
	// Deadline is when it counts as failed, nil if it never does or that is not known.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Owner is who has it in hand: the person who paused it, the holder of the lock,
	// the workload that the Pod belongs to.
	Owner string `json:"owner,omitempty"`
	// First is the command that makes a file which Next reads, empty if it reads none.
	First string `json:"first,omitempty"`
	// Next is the exact command that comes next, empty if there is nothing to do but
	// to wait.
	Next string `json:"next,omitempty"`
}

// World is what an explanation reads, and with which options.
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

// answerFunc answers a question. First is true for the object that the caller has named,
// of which all facts are wanted.
type answerFunc func(ctx context.Context, first bool) (answer, error)

// asker asks one cluster about what the rings roll out, and about native objects.
type asker struct {
	World

	// In is the name of the cluster of the fleet that it asks, empty for the one that
	// the caller has named.
	In string
	// First is the command that must be run before other commands reach the cluster,
	// empty if none is needed.
	First string
	// listed is what the state of config is read from: all links see one moment of it. It is nil until it is needed.
	listed *snapshot.Snapshot
}

// question is what to ask next, and in which cluster.
type question struct {
	asker  *asker
	ref    describe.Ref
	answer answerFunc
}

// answer has at least one link. Then is the question that the chain continues with, nil
// at the root.
type answer struct {
	Links   []Link
	Then    *question
	Facts   []describe.Fact
	Details any
}

// answering is an answer about an object, as it comes together.
type answering struct {
	*asker

	ref   describe.Ref
	found answer
}

// own is the link about the object itself.
func (so *answering) own() *Link { return &so.found.Links[0] }

func (so *answering) add(links ...Link) { so.found.Links = append(so.found.Links, links...) }

// And continues with what another answer says, if there is one.
func (so answer) And(more *answer) answer {
	if more != nil {
		so.Links, so.Then = append(so.Links, more.Links...), more.Then
	}
	return so
}

// about asks about an object in the same cluster.
func (a *asker) about(ref describe.Ref) *question { return a.ask(ref, a.answers(ref)) }

// ask is a question about a reference in the same cluster.
func (a *asker) ask(ref describe.Ref, answer answerFunc) *question {
	return &question{asker: a, ref: ref, answer: answer}
}

// linkTo is a link about a unit, as its ring describes it.
func (a *asker) linkTo(u *describe.Unit) Link {
	link := a.link(u.Ref, u.Reason, "%s", u.Sentence)
	link.Ring, link.Phase = u.Ring, u.Phase
	link.Since, link.Until, link.Deadline = u.Since, u.Until, u.Deadline
	if u.Paused {
		link.Next = a.spillway("resume", u.Ref)
	}
	return link
}

// unseen is the last link of a chain that the caller may not read further. Its command
// gets what was refused, which need not be the object that the link is about.
func (a *asker) unseen(ref describe.Ref, err error) Link {
	refused := refusedIn(err)
	if refused == nil || refused.isOf(ref) {
		l := a.link(ref, ReasonUnseen, "%s %s cannot be read: %s", ref.Kind, ref.Name, lastOf(err))
		l.Next = a.again(ref)
		return l
	}
	l := a.link(ref, ReasonUnseen, "%s cannot be read: %s", refused, lastOf(err))
	l.Next = a.command(refused.get(ref.Namespace))
	return l
}

// link is a link with a sentence of its own.
func (a *asker) link(ref describe.Ref, reason rollout.Reason, format string, args ...any) Link {
	return Link{Ref: a.at(ref), Reason: reason, Sentence: a.place() + strings.TrimSuffix(fmt.Sprintf(format, args...), "."), First: a.First}
}

// at adds the name of the cluster to a reference.
func (a *asker) at(ref describe.Ref) describe.Ref {
	ref.Cluster = a.In
	return ref
}

// place begins a sentence about another cluster than the one that was asked.
func (a *asker) place() string {
	if a.In == "" {
		return ""
	}
	return "on cluster " + a.In + ", "
}

// lastOf is the text of the API server, without what was wrapped around it.
func lastOf(err error) string {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err.Error()
		}
		err = inner.Unwrap()
	}
}

// get reads an object.
func (a *asker) get(ctx context.Context, ref describe.Ref, obj client.Object) error {
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj); err != nil {
		return fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// IsNotFound looks through what an error was wrapped in.
func IsNotFound(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound
}

// maxLinks bounds a chain. The longest that makes sense, from a module down to the
// manager of the cluster beneath it, has fifteen.
const maxLinks = 24

// follow asks until there is nothing more to ask, and never asks twice about the same
// object. Where the caller may not read, or a cluster does not answer, the chain ends with
// a link that says so; it is an error if nothing at all was found.
func follow(ctx context.Context, q *question) (Chain, error) {
	first, err := q.answer(ctx, true)
	if err != nil && (len(first.Links) == 0 || ctx.Err() != nil) {
		return Chain{}, err
	}
	chain := Chain{Links: q.links(&first, err), Facts: first.Facts, Details: first.Details}
	asked := map[describe.Ref]bool{q.asker.at(q.ref): true}
	for next := first.Then; err == nil && next != nil && len(chain.Links) < maxLinks && !asked[next.asker.at(next.ref)]; {
		asked[next.asker.at(next.ref)] = true
		var a answer
		a, err = next.answer(ctx, false)
		chain.Links = append(chain.Links, next.links(&a, err)...)
		next = a.Then
	}
	return chain, nil
}

// links are those of an answer, with the one where it was cut short.
func (q *question) links(a *answer, err error) []Link {
	if err != nil {
		return append(a.Links, q.asker.unseen(q.ref, err))
	}
	return a.Links
}
