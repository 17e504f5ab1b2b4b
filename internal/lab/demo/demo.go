// Package demo shows the main task as a story: a small shop runs, a user edits a
// ConfigMap and a Secret, and the change reaches the Pods that use them.
//
// It acts as the user and watches; the manager that does the work is a process of its
// own, the same binary as in a cluster.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/kube"
)

// patience is how long the story may take.
const patience = 5 * time.Minute

// Options say where the demo plays.
type Options struct {
	// Config is the cluster, Kubeconfig the path that a user can go on with.
	Config     *rest.Config
	Kubeconfig string
	// Namespace is made for the demo.
	Namespace string
	// Simulated is true where kwok simulates the kubelets. They then take a moment to
	// start a Pod, so that its progress is visible.
	Simulated bool
	// MetricsURL is where the manager serves its metrics.
	MetricsURL string
	// Rings are the options that the manager runs with.
	Rings config.Options
	// Zones is true if the cluster has the kind RolloutGroup, which a chapter needs.
	Zones bool
	// Pins is true if the API server points the Pods of the namespace at the config of their
	// revisions, which a chapter needs.
	Pins bool
	Out  io.Writer
	// Explain writes why an object waits, "deployment/web", as the command does.
	Explain func(ctx context.Context, object string) error
	// Stays is true if the cluster keeps running after the demo.
	Stays bool
	// Width is that of the terminal that Out is, which can be written over; zero
	// if it is none.
	Width int
	Now   func() time.Time
}

// edits is what the user of the story changes, and what has to come of it.
const (
	rolledBy  = "orders, web, checkout and collector use what changes, and roll"
	editText  = "ConfigMap shop: LOG_LEVEL=debug, and Secret database: a new password"
	storyText = "proxy uses only another key; legacy is not tracked; report is paused; mailer waits for a Secret"
)

// expected are the workloads that the edit has to roll; all others must not.
var expected = []string{"DaemonSet collector", "Deployment checkout", "Deployment web", "StatefulSet orders"}

// Run shows the story. It fails if a workload rolled that should not have, or did not
// roll that should have.
func Run(parent context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(parent, patience)
	defer cancel()
	known, err := kube.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(o.Config, client.Options{Scheme: known})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	s := &story{Options: o, client: c, view: newView(o.Out, o.Width)}
	s.readKubelet(ctx)
	for _, chapter := range []func(context.Context) error{s.open, s.edit, s.spoilPrices, s.explainPrices, s.returnPrices, s.moveZones, s.conclude} {
		if err := chapter(ctx); err != nil {
			return cmp.Or(parent.Err(), err) //nolint:wrapcheck // the interruption, or an error of this package
		}
	}
	return nil
}

// story is one run of the demo.
type story struct {
	Options
	client client.WithWatch
	view   *view
	// before are the hashes before the edit, written the writes until then.
	before map[string]string
	// after are the hashes after the edit, and writes the writes that it took.
	after   map[string]string
	written int
	writes  int
	edited  time.Time
	settled time.Time
	// moved are the zones in the order in which they began to roll.
	moved     []string
	zonesTook time.Duration
	prices    pricesStory
}

// open brings up the shop.
func (s *story) open(ctx context.Context) error {
	s.view.heading("A small shop: its workloads get the hash of the config that they use")
	if s.Pins && s.Simulated {
		s.startKubelet(ctx)
	}
	if err := s.applyShop(ctx); err != nil {
		return err
	}
	if err := s.settle(ctx, func(e []config.Explanation) bool { return allHashed(e) && allSettled(e) }); err != nil {
		return err
	}
	explanations, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.before = hashes(explanations)
	s.written, err = s.madeWrites(ctx)
	return err
}

// edit changes one ConfigMap and one Secret, and watches until all has settled.
func (s *story) edit(ctx context.Context) error {
	s.view.heading("A user edits " + editText)
	s.view.line(rolledBy + ", at most " + fmt.Sprint(s.Rings.MaxRolling) + " at a time;\n" + storyText + ".\n")
	s.edited = s.Now()
	if err := s.applyEdits(ctx); err != nil {
		return err
	}
	err := s.settle(ctx, func(e []config.Explanation) bool {
		return allSettled(e) && !slices.ContainsFunc(expected, func(name string) bool { return hashes(e)[name] == s.before[name] })
	})
	if err != nil {
		return err
	}
	s.settled = s.Now()
	return s.count(ctx)
}

// count notes what the edit has come to.
func (s *story) count(ctx context.Context) error {
	explanations, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.after = hashes(explanations)
	made, err := s.madeWrites(ctx)
	s.writes = made - s.written
	return err
}

// settle shows the state of all workloads until done is true.
func (s *story) settle(ctx context.Context, done func([]config.Explanation) bool) error {
	return s.settleOf(ctx, nil, done)
}

// settleOf shows some workloads, all without names.
func (s *story) settleOf(ctx context.Context, names []string, done func([]config.Explanation) bool) error {
	ticker := time.NewTicker(150 * time.Millisecond) //nolint:forbidigo // a view for people, refreshed as they read
	defer ticker.Stop()
	for {
		explanations, err := s.look(ctx)
		if err != nil {
			return err
		}
		if names != nil {
			explanations = slices.DeleteFunc(explanations, func(e config.Explanation) bool { return !slices.Contains(names, e.Name) })
		}
		s.view.show(workloads(explanations))
		if done(explanations) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the demo did not settle in %s: %s", patience, unsettled(explanations))
		case <-ticker.C:
		}
	}
}

func (s *story) look(ctx context.Context) ([]config.Explanation, error) {
	o := s.Rings
	o.Now = s.Now
	explanations, err := config.Status(ctx, s.client, o, s.Namespace)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return explanations, nil
}

// conclude sums up, and checks that the expected workloads rolled and no other.
func (s *story) conclude(context.Context) error {
	rolled := []string{}
	for name, hash := range s.after {
		if s.before[name] != hash {
			rolled = append(rolled, name)
		}
	}
	slices.Sort(rolled)
	s.view.heading("Done")
	s.view.line(fmt.Sprintf("rolled            %d: %s", len(rolled), strings.Join(rolled, ", ")))
	s.view.line("left alone        2: Deployment proxy (another key), Deployment legacy (not tracked)")
	s.view.line("waiting           2: Deployment report (paused), Deployment mailer (Secret smtp not found)")
	s.view.line(fmt.Sprintf("API writes        %d for %d workloads that rolled", s.writes, len(rolled)))
	s.view.line(fmt.Sprintf("seconds           %.1f from the edit until all had settled", s.settled.Sub(s.edited).Seconds()))
	if s.Pins {
		s.view.line(fmt.Sprintf("bad value         stopped at Deployment catalog, which got its previous config back; Deployment offers never had it: %.1f s", s.prices.took.Seconds()))
	}
	if s.Zones {
		s.view.line(fmt.Sprintf("zones             %s, one after the other: %d Pods in %.1f s", strings.Join(s.moved, ", "), zonePods, s.zonesTook.Seconds()))
	}
	if !slices.Equal(rolled, expected) {
		return fmt.Errorf("%s should have rolled, and nothing else", strings.Join(expected, ", "))
	}
	if s.writes > len(expected) { // a manager that ran before may have made some
		return fmt.Errorf("%d workloads rolled, but there were %d writes", len(expected), s.writes)
	}
	if s.Stays {
		s.goOn()
	}
	return nil
}

// goOn lists commands to continue with.
func (s *story) goOn() {
	s.view.heading("Continue by hand")
	environment := "export KUBECONFIG=" + s.Kubeconfig
	if s.Pins { // no Deployment says with which flags the manager runs
		environment += " SPILLWAY_PIN_NAMESPACES=" + s.Namespace
	}
	for _, command := range []string{
		environment,
		"spillway status -n " + s.Namespace,
		"spillway explain deployment/mailer -n " + s.Namespace,
		"spillway explain rolloutgroup/store -n " + s.Namespace,
		"spillway history configmap/prices -n " + s.Namespace,
		"kubectl create secret generic smtp --from-literal=user=shop -n " + s.Namespace,
		"spillway resume deployment/report -n " + s.Namespace,
	} {
		s.view.line("  " + command)
	}
}

func hashes(explanations []config.Explanation) map[string]string {
	found := make(map[string]string, len(explanations))
	for _, e := range explanations {
		found[e.Kind+" "+e.Name] = e.Hash
	}
	return found
}

// allHashed is true once every workload has its first hash, but for those that
// are not to have one.
func allHashed(explanations []config.Explanation) bool {
	return len(explanations) > 0 && !slices.ContainsFunc(explanations, func(e config.Explanation) bool {
		return e.Hash == "" && !waitsForUser(e)
	})
}

// allSettled is true once no workload rolls, and those that wait, wait for a user.
func allSettled(explanations []config.Explanation) bool {
	return unsettled(explanations) == ""
}

func unsettled(explanations []config.Explanation) string {
	for _, e := range explanations {
		if e.State != config.StateUpToDate && !waitsForUser(e) {
			return e.Sentence
		}
	}
	return ""
}

func waitsForUser(e config.Explanation) bool {
	return e.Name == "report" || e.Name == "mailer"
}

var errNoWrites = errors.New("the metrics of the manager lack the number of its writes")
