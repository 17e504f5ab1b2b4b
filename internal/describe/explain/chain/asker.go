package chain

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

// AnswerFunc answers a question. First is true for the object that the caller has named,
// of which all facts are wanted.
type AnswerFunc func(ctx context.Context, first bool) (Answer, error)

// Asker asks one cluster. What it asks about an object of a kind is decided by the package that
// made it, so that packages which know different kinds can refer to each other's.
type Asker struct {
	World

	// In is the name of the cluster of the fleet that it asks, empty for the one that
	// the caller has named.
	In string
	// First is the command that must be run before other commands reach the cluster,
	// empty if none is needed.
	First string

	answers func(describe.Ref) AnswerFunc
	manager func(namespace string) *Question
}

// NewAsker asks about objects as answers says, and about the manager of a namespace as
// manager says.
func NewAsker(w World, answers func(describe.Ref) AnswerFunc, manager func(namespace string) *Question) *Asker {
	return &Asker{World: w, answers: answers, manager: manager}
}

// Question is what to ask next, and in which cluster.
type Question struct {
	asker  *Asker
	ref    describe.Ref
	answer AnswerFunc
}

// Answer has at least one link. Then is the question that the chain continues with, nil
// at the root.
type Answer struct {
	Links   []Link
	Then    *Question
	Facts   []describe.Fact
	Details any
}

// And continues with what another answer says, if there is one.
func (so Answer) And(more *Answer) Answer {
	if more != nil {
		so.Links, so.Then = append(so.Links, more.Links...), more.Then
	}
	return so
}

// About asks about an object in the same cluster.
func (a *Asker) About(ref describe.Ref) *Question { return a.Ask(ref, a.answers(ref)) }

// Manager asks whether a manager runs that watches a namespace. It is asked where an
// object waits for nothing else.
func (a *Asker) Manager(namespace string) *Question { return a.manager(namespace) }

// Ask is a question about a reference in the same cluster.
func (a *Asker) Ask(ref describe.Ref, answer AnswerFunc) *Question {
	return &Question{asker: a, ref: ref, answer: answer}
}

// LinkTo is a link about a unit, as its ring describes it.
func (a *Asker) LinkTo(u *describe.Unit) Link {
	link := a.Link(u.Ref, u.Reason, "%s", u.Sentence)
	link.Ring, link.Phase = u.Ring, u.Phase
	link.Since, link.Until, link.Deadline = u.Since, u.Until, u.Deadline
	if u.Paused {
		link.Next = a.Spillway("resume", u.Ref)
	}
	return link
}

// Unseen is the last link of a chain that the caller may not read further. Its command
// gets what was refused, which need not be the object that the link is about.
func (a *Asker) Unseen(ref describe.Ref, err error) Link {
	refused := refusedIn(err)
	if refused == nil || refused.isOf(ref) {
		l := a.Link(ref, ReasonUnseen, "%s %s cannot be read: %s", ref.Kind, ref.Name, LastOf(err))
		l.Next = a.again(ref)
		return l
	}
	l := a.Link(ref, ReasonUnseen, "%s cannot be read: %s", refused, LastOf(err))
	l.Next = a.Command(refused.get(ref.Namespace))
	return l
}

// Link is a link with a sentence of its own.
func (a *Asker) Link(ref describe.Ref, reason rollout.Reason, format string, args ...any) Link {
	return Link{Ref: a.at(ref), Reason: reason, Sentence: a.Place() + strings.TrimSuffix(fmt.Sprintf(format, args...), "."), First: a.First}
}

// at adds the name of the cluster to a reference.
func (a *Asker) at(ref describe.Ref) describe.Ref {
	ref.Cluster = a.In
	return ref
}

// Place begins a sentence about another cluster than the one that was asked.
func (a *Asker) Place() string {
	if a.In == "" {
		return ""
	}
	return "on cluster " + a.In + ", "
}

// LastOf is the text of the API server, without what was wrapped around it.
func LastOf(err error) string {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err.Error()
		}
		err = inner.Unwrap()
	}
}

// Get reads an object.
func (a *Asker) Get(ctx context.Context, ref describe.Ref, obj client.Object) error {
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
