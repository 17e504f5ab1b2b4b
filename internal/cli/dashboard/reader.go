package dashboard

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/dashboard"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/ring"
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

// person is who can do something.
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

// of is what is rolled for an object.
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
