package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
)

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
