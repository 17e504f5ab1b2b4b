package dashboard

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

// person steers as the commands do, with a client of her own.
type person struct {
	client client.Client
	now    func() time.Time
	// words are the flags of the command that does the same.
	words []string
}

// Verbs implements [dashboard.Steering].
func (p *person) Verbs(kind string) []string {
	var verbs []string
	for _, v := range act.Verbs(kind) {
		verbs = append(verbs, string(v))
	}
	return verbs
}

// Prepare implements [dashboard.Steering].
func (p *person) Prepare(ctx context.Context, w dashboard.Wish) (dashboard.Prospect, error) {
	none := dashboard.Prospect{}
	write, err := act.Prepare(ctx, p.client, request(w), p.author(w, ""))
	if err != nil {
		return none, err
	}
	denied, err := p.denied(ctx, act.Verb(w.Verb), write)
	if err != nil {
		return none, err
	}
	supposed, about := supposed(w, write)
	return dashboard.Prospect{
		Said: write.Said, Next: write.Next, Version: write.Version(), Denied: denied,
		Command: p.command(w), Supposed: supposed, About: about,
	}, nil
}

// Do implements [dashboard.Steering].
func (p *person) Do(ctx context.Context, w dashboard.Wish, version string) (string, error) {
	who := p.author(w, act.Whoami(ctx, p.client))
	write, err := act.Prepare(ctx, p.client, request(w), who)
	if err != nil {
		return "", err
	}
	if write.Version() != version {
		return "", dashboard.ErrChanged
	}
	switch err := write.Write(ctx, p.client); {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return "", dashboard.ErrChanged
	case err != nil:
		return "", err
	}
	return write.Said, write.Record(ctx, p.client, who, p.now())
}

func (p *person) author(w dashboard.Wish, by string) act.Author {
	return act.Author{By: by, Reason: w.Reason, At: metav1.NewTime(p.now().Truncate(time.Second))}
}

func request(w dashboard.Wish) act.Request {
	return act.Request{Verb: act.Verb(w.Verb), Ref: w.Ref, To: w.To, Cluster: w.Cluster}
}

// denied is the permission that the person lacks, empty if she may write.
func (p *person) denied(ctx context.Context, verb act.Verb, w *act.Write) (string, error) {
	needs, err := w.Needs(p.client)
	if err != nil {
		return "", err
	}
	missing, err := act.Missing(ctx, p.client, needs, string(verb))
	if err != nil || missing == "" {
		return "", err
	}
	resource := needs.Resource
	if needs.Subresource != "" {
		resource += "/" + needs.Subresource
	}
	if needs.Group != "" {
		resource += "." + needs.Group
	}
	in := ""
	if needs.Namespace != "" {
		in = " in namespace " + needs.Namespace
	}
	return fmt.Sprintf("You may not do it: it takes the permission to %s %s%s.", missing, resource, in), nil
}

// supposed is the act as a forecast supposes it, and the object of the forecast.
func supposed(w dashboard.Wish, write *act.Write) (string, describe.Ref) {
	switch gate, isGate := write.Object.(*v1alpha1.RolloutGate); {
	case isGate && act.Verb(w.Verb) == act.Approve:
		target := gate.Spec.TargetRef
		return forecast.Approve + "=" + gate.Spec.Gate, describe.Ref{Kind: target.Kind, Namespace: gate.Namespace, Name: target.Name}
	case act.Verb(w.Verb) == act.Pause:
		return forecast.Pause + "=" + w.Ref.String(), w.Ref
	default:
		return "", describe.Ref{}
	}
}

// command is the one that does the same.
func (p *person) command(w dashboard.Wish) string {
	words := append([]string{"spillway"}, act.Words(request(w))...)
	if w.Reason != "" {
		words = append(words, "--reason", shell.Quote(w.Reason))
	}
	return strings.Join(append(words, p.words...), " ")
}
