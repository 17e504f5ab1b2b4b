package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// reader reads a cluster for the pages, with the client of one person.
type reader struct {
	*command.Query

	namespace string
	live      client.Client
	mirror    *snapshot.Watched
	memory    *describe.Memory
	rules     config.Options
	// dial connects to clusters of the fleet; nil does not.
	dial func(kubeconfig []byte) (client.Client, error)
	// words are the flags of the commands that are shown.
	words []string

	// absence is why no manager was at work when that was asked last, and until when it counts: pages are
	// made many times a second while rollouts move.
	absence struct {
		sync.Mutex

		why   string
		until time.Time
	}
}

// noManager is [command.Query.NoManager], which asks the API server no more often than its answer may change.
func (r *reader) noManager(ctx context.Context, underWay bool) (why string, until time.Time) {
	a := &r.absence
	a.Lock()
	defer a.Unlock()
	if !r.Env.Now().Before(a.until) {
		a.why, a.until = r.NoManager(ctx, underWay)
	}
	return a.why, a.until
}

// watch keeps up with a namespace, with all if it is empty, until the context ends.
func (r *reader) watch(ctx context.Context, namespace string) error {
	var err error
	r.namespace, r.memory = namespace, describe.NewMemory()
	r.mirror, err = r.Mirror(ctx, r.live, namespace, true)
	return err
}

// source is what the pages show. Nothing can be done there.
func (r *reader) source() dashboard.Source {
	place := "namespace " + r.namespace
	if r.namespace == "" {
		place = "all namespaces"
	}
	return dashboard.Source{
		Place: place, Namespace: r.namespace, Now: r.Env.Now, Changed: r.mirror.Changed(),
		Look: r.look, Of: r.of, Explain: r.explain, Forecast: r.forecast,
		NoManager: func(ctx context.Context, underWay bool) string {
			why, _ := r.noManager(ctx, underWay)
			return why
		},
		Named: func(namespace, object string) (describe.Ref, error) {
			return describe.Named(r.Cluster.RESTMapper, namespace, object)
		},
		History: func(ctx context.Context, ref describe.Ref) ([]history.Entry, error) {
			return history.History(ctx, r.live, ref)
		},
	}
}

func (r *reader) person() *person { return &person{client: r.live, now: r.Env.Now, words: r.words} }

func (r *reader) look(ctx context.Context, part func(describe.Partial)) (describe.Description, error) {
	if err := r.mirror.Reaches(ctx); err != nil {
		return describe.Description{}, err
	}
	d, err := describe.Describe(ctx, r.mirror, describe.Options{Config: r.rules, Namespace: r.namespace, Memory: r.memory, Partial: part})
	if err == nil {
		var until time.Time
		d.NoManager, until = r.noManager(ctx, !describe.AreComplete(d.Units))
		d.Wake = ring.Earlier(d.Wake, until)
	}
	return d, err
}

func (r *reader) of(ctx context.Context, ref describe.Ref) (*describe.Unit, error) {
	found, err := describe.Describe(ctx, r.mirror, describe.Options{Config: r.rules, Namespace: ref.Namespace, Object: &ref})
	return describe.Find(found.Units, ref), err
}

func (r *reader) explain(ctx context.Context, ref describe.Ref) (explain.Chain, error) {
	return explain.Explain(ctx, explain.World{Client: r.mirror, Options: r.rules, Dial: r.dial, Flags: r.words}, ref)
}

func (r *reader) forecast(ctx context.Context, namespace, object string, ifs []forecast.Supposition) (forecast.Answer, error) {
	options, err := show.Present(ctx, r.Query, r.live, r.rules, namespace, world.DefaultReady)
	if err != nil {
		return forecast.Answer{}, err
	}
	return forecast.Compare(ctx, options, object, ifs)
}

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

func (p *person) command(w dashboard.Wish) string {
	words := append([]string{"spillway"}, act.Words(request(w))...)
	if w.Reason != "" {
		words = append(words, "--reason", shell.Quote(w.Reason))
	}
	return strings.Join(append(words, p.words...), " ")
}
