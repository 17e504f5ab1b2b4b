package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// FleetOptions say which clusters the story of a fleet uses. Managers and Flux run already.
type FleetOptions struct {
	// Hub is the cluster with the modules.
	Hub *rest.Config
	// Members are the other clusters; the first is the canary.
	Members []Member
	// Publish has a tag of the repository consist of a manifest.
	Publish func(ctx context.Context, tag, manifest string) error
	// Repository is its URL.
	Repository string
	Out        io.Writer
	// Width is that of the terminal that Out is, zero if it is none.
	Width int
}

// Member is a cluster of the fleet.
type Member struct {
	Name       string
	Config     *rest.Config
	Kubeconfig []byte
}

// fleetNamespace is where everything is, on all clusters.
const fleetNamespace = "default"

// fleetModule rolls to a canary, waits for an approval, and rolls to the rest. It rolls
// back automatically where it fails.
const fleetModule = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: shop, namespace: default}
spec:
  selector: {matchLabels: {env: prod}}
  strategy: Incremental
  rollout:
    onFailure: Rollback
    stages:
    - {name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve}]}
    - {name: rest}
  template: {spec: {sync: {source: {git: {url: %q, version: {tag: %s}}}, timeout: 5s}}}
`

const (
	goodManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: default}\ndata: {version: %s}\n"
	badManifest  = "apiVersion: v1\nkind: NoSuchKind\nmetadata: {name: shop, namespace: default}\ndata: {version: %s}\n"
)

// fleetStory is one run of it.
type fleetStory struct {
	FleetOptions

	hub     client.Client
	members []client.Client
	view    *view
}

// RunFleet shows how a Module rolls over clusters: the canary first, then, after an
// approval, the rest; and how a bad revision stops at the canary and rolls back. It
// fails if a cluster runs the wrong version.
func RunFleet(ctx context.Context, o FleetOptions) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &fleetStory{FleetOptions: o, view: newView(o.Out, o.Width)}
	if err := s.connect(); err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{s.join, s.first, s.second, s.bad} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	s.view.line("\nEvery cluster runs v2. The rollback was automatic.")
	return nil
}

func (s *fleetStory) connect() error {
	kinds, err := kube.NewScheme()
	if err != nil {
		return err
	}
	if s.hub, err = client.New(s.Hub, client.Options{Scheme: kinds}); err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	for _, m := range s.Members {
		c, err := client.New(m.Config, client.Options{Scheme: kinds})
		if err != nil {
			return fmt.Errorf("connect to cluster %s: %w", m.Name, err)
		}
		s.members = append(s.members, c)
	}
	return nil
}

// join makes the clusters known on the hub, by their kubeconfigs.
func (s *fleetStory) join(ctx context.Context) error {
	s.view.heading("A hub, and three clusters of which it has the kubeconfigs")
	for i, m := range s.Members {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: m.Name + "-kubeconfig", Labels: map[string]string{
				vocabulary.Cluster.Native: "true", "env": "prod", "canary": fmt.Sprint(i == 0),
			}},
			Data: map[string][]byte{"value": m.Kubeconfig},
		}
		if err := s.hub.Create(ctx, secret); err != nil {
			return fmt.Errorf("make cluster %s known: %w", m.Name, err)
		}
		s.view.line(fmt.Sprintf("%s, labels env=prod, canary=%v", m.Name, i == 0))
	}
	return nil
}

func (s *fleetStory) first(ctx context.Context) error {
	s.view.heading("Module shop at v1: to the canary, and after an approval to the rest")
	return s.release(ctx, "v1", "")
}

func (s *fleetStory) second(ctx context.Context) error {
	s.view.heading("The module is edited: v2")
	return s.release(ctx, "v2", "v1")
}

// release rolls out a good version. Before the approval, the rest runs the version before.
func (s *fleetStory) release(ctx context.Context, version, before string) error {
	if err := s.apply(ctx, version, goodManifest); err != nil {
		return err
	}
	if err := s.until(ctx, func(m *v1alpha1.Module) bool { return strings.Contains(m.Status.WaitingFor, "approve") }); err != nil {
		return err
	}
	if err := s.expect(ctx, version, before, before); err != nil {
		return err
	}
	s.view.line("  approved: condition Passed of the RolloutGate is True now")
	if err := s.approve(ctx); err != nil {
		return err
	}
	if err := s.until(ctx, func(m *v1alpha1.Module) bool { return m.Status.Phase == "Complete" }); err != nil {
		return err
	}
	return s.expect(ctx, version, version, version)
}

func (s *fleetStory) bad(ctx context.Context) error {
	s.view.heading("v3 has a manifest that no cluster accepts")
	if err := s.apply(ctx, "v3", badManifest); err != nil {
		return err
	}
	if err := s.until(ctx, func(m *v1alpha1.Module) bool { return m.Status.RolledBack != "" }); err != nil {
		return err
	}
	if err := s.until(ctx, s.isHealthy(ctx)); err != nil {
		return err
	}
	return s.expect(ctx, "v2", "v2", "v2")
}

// isHealthy is true once every cluster has succeeded at what it is assigned.
func (s *fleetStory) isHealthy(ctx context.Context) func(*v1alpha1.Module) bool {
	return func(*v1alpha1.Module) bool {
		for _, m := range s.Members {
			p := &v1alpha1.ProxyAssemblage{}
			if err := s.hub.Get(ctx, client.ObjectKey{Namespace: fleetNamespace, Name: m.Name}, p); err != nil || !apimeta.IsStatusConditionTrue(p.Status.Conditions, "Ready") {
				return false
			}
		}
		return true
	}
}

// apply publishes a version, and points the module at it.
func (s *fleetStory) apply(ctx context.Context, version, manifest string) error {
	if err := s.Publish(ctx, version, fmt.Sprintf(manifest, version)); err != nil {
		return err
	}
	m := &v1alpha1.Module{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, fleetModule, s.Repository, version), m); err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	existing := &v1alpha1.Module{}
	err := s.hub.Get(ctx, client.ObjectKeyFromObject(m), existing)
	if apierrors.IsNotFound(err) {
		return wrap(s.hub.Create(ctx, m), "create the module")
	}
	if err != nil {
		return fmt.Errorf("get the module: %w", err)
	}
	before := existing.DeepCopy()
	existing.Spec = m.Spec
	return wrap(s.hub.Patch(ctx, existing, client.MergeFrom(before)), "edit the module")
}

// approve passes the gates of the revision that is being rolled out.
func (s *fleetStory) approve(ctx context.Context) error {
	m, err := s.module(ctx)
	if err != nil {
		return err
	}
	gates := &spillway.RolloutGateList{}
	if err := s.hub.List(ctx, gates, client.InNamespace(fleetNamespace)); err != nil {
		return fmt.Errorf("list gates: %w", err)
	}
	for i := range gates.Items {
		g := &gates.Items[i]
		if g.Spec.Revision != m.Status.TargetRevision {
			continue
		}
		apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: spillway.GatePassed, Status: metav1.ConditionTrue, Reason: string(reasons.Approved), Message: "metrics are healthy"})
		if err := s.hub.Status().Update(ctx, g); err != nil {
			return fmt.Errorf("approve: %w", err)
		}
	}
	return nil
}

// until shows the progress until done is true of the module as it was last edited.
func (s *fleetStory) until(ctx context.Context, done func(*v1alpha1.Module) bool) error {
	said := ""
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		m, err := s.module(ctx)
		if err != nil {
			return false, err
		}
		s.view.show(s.rows(ctx, m))
		said = m.Status.WaitingFor
		return m.Status.ObservedGeneration == m.Generation && done(m), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the module did not get there in time; it is waiting for: %s", said)
	}
	return wrap(err, "wait for the module")
}

func (s *fleetStory) module(ctx context.Context) (*v1alpha1.Module, error) {
	m := &v1alpha1.Module{}
	err := s.hub.Get(ctx, client.ObjectKey{Namespace: fleetNamespace, Name: "shop"}, m)
	return m, wrap(err, "get the module")
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (s *fleetStory) rows(ctx context.Context, m *v1alpha1.Module) []row {
	text := "Module shop: " + m.Status.Phase
	if m.Status.WaitingFor != "" {
		text += ": " + m.Status.WaitingFor
	}
	rows := []row{{"module", text}}
	for i, member := range s.Members {
		rows = append(rows, row{member.Name, fmt.Sprintf("  %-8s runs %-8s %s", member.Name, orNothing(s.version(ctx, i)), s.state(ctx, member.Name))})
	}
	return rows
}

func orNothing(version string) string {
	if version == "" {
		return "nothing,"
	}
	return version + ","
}

// state is what the hub says about what a cluster is assigned.
func (s *fleetStory) state(ctx context.Context, cluster string) string {
	p := &v1alpha1.ProxyAssemblage{}
	err := s.hub.Get(ctx, client.ObjectKey{Namespace: fleetNamespace, Name: cluster}, p)
	if err != nil || len(p.Status.Syncs) == 0 {
		return "has no assignment yet"
	}
	sync := p.Status.Syncs[0]
	if sync.State == v1alpha1.StateSucceeded {
		return "and is healthy"
	}
	return string(sync.State) + ": " + sync.Message
}

// expect returns an error if a cluster runs another version.
func (s *fleetStory) expect(ctx context.Context, versions ...string) error {
	for i, want := range versions {
		if got := s.version(ctx, i); got != want {
			return fmt.Errorf("cluster %s runs %q, and must run %q", s.Members[i].Name, got, want)
		}
	}
	return nil
}

// version is what a cluster runs.
func (s *fleetStory) version(ctx context.Context, i int) string {
	cm := &corev1.ConfigMap{}
	if err := s.members[i].Get(ctx, client.ObjectKey{Namespace: fleetNamespace, Name: "shop"}, cm); err != nil {
		return ""
	}
	return cm.Data["version"]
}
