package explain_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/lab/flux"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/zones"
)

// situation is something that has gone wrong, planted on purpose.
type situation struct {
	name string
	// plant are manifests, where NS is the namespace. What comes after the first is
	// applied in order.
	plant string
	// act does what no manifest can.
	act func(*world)
	// sees is what the person who asks may look at, as RESOURCE.GROUP; everything if it
	// is nothing.
	sees []string
	// ask is what a person asks about: KIND/NAME, or KIND/NAME@CLUSTER.
	ask string
	// through are the kinds of the links, if they matter.
	through string
	// by is part of the sentence of one of the links.
	by string
	// root is what must be found at the end: KIND/NAME, or KIND/NAME@CLUSTER.
	root string
	// says is part of the root's sentence, next the command that comes next.
	says, next string
	// fact is part of what else is said of what a person asks about.
	fact string
	// owner is who is said to have it in hand, if that matters; and times are those that
	// must be given: since, until, deadline.
	owner, times string
	// ago is how long ago it began, by what was planted.
	ago time.Duration
}

// world is a namespace in which a situation is planted.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	// asks is the client of the person who asks.
	asks client.Client
	// began is when anything was planted first.
	began time.Time
}

// sees has a user ask who may read nothing else.
func (w *world) sees(resources []string) {
	w.t.Helper()
	var rules []rbacv1.PolicyRule
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, Verbs: []string{"get", "list"}})
	}
	user := "viewer-of-" + w.namespace
	testenv.Grant(w.t, w.client, w.namespace, user, rules)
	config := rest.CopyConfig(testenv.Shared().Config())
	config.Impersonate.UserName = user
	var err error
	if w.asks, err = client.New(config, client.Options{Scheme: w.client.Scheme()}); err != nil {
		w.t.Fatal(err)
	}
}

// installed has the kinds of all rings and of Flux installed once.
var installed sync.Once

func install(t *testing.T, c client.Client) {
	t.Helper()
	installed.Do(func() {
		assets, err := flux.Find(t.Context(), os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		if err := assets.Install(t.Context(), testenv.Shared().Config()); err != nil {
			t.Fatal(err)
		}
		objects, err := manifests.KindsOf(allRings)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Kinds(t, c, objects)
	})
}

var allRings = []string{manager.RingConfig, manager.RingZones, manager.RingPlans, manager.RingFleet, manager.RingAssemblage}

// manage runs one manager with all rings, which knows the options that the commands
// are given as well.
func manage(t *testing.T) (stop func()) {
	t.Helper()
	o := manager.Options{
		Rings: allRings, Config: options(), Zones: zones.Options{Now: time.Now}, Plans: plans.Options{Now: time.Now},
		Fleet: hub.Options{Now: time.Now}, Assemblage: agent.Options{Now: time.Now},
		MetricsAddress: "0", ProbeAddress: "0", Version: "test",
	}
	return testenv.Managed(t, fault.New(), func(ctx context.Context, log logr.Logger) error {
		o.Log = log
		return manager.Run(ctx, testenv.Shared().Config(), o)
	})
}

func options() config.Options {
	return config.Options{Now: time.Now, Options: decision.Options{MaxRollingPerNamespace: 1}}
}

func (w *world) text(s string) string { return strings.ReplaceAll(s, "NS", w.namespace) }

// apply applies manifests as a user does.
func (w *world) apply(docs string) {
	w.t.Helper()
	for doc := range strings.SplitSeq(w.text(docs), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			w.t.Fatalf("%v:\n%s", err, doc)
		}
		if len(u.Object) == 0 {
			continue
		}
		if w.isNamespaced(u) {
			u.SetNamespace(w.namespace)
		}
		testenv.Apply(w.t, w.client, u)
		if u.GetKind() == "ResourceQuota" {
			w.isHeeded(u)
		}
	}
}

// isHeeded waits until the API server refuses a Pod for the quota. An API server that has
// not seen a new quota yet lets one pass.
func (w *world) isHeeded(quota *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "asked-", Namespace: w.namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "x"}}}}
		if err := w.client.Create(ctx, pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "exceeded quota: "+quota.GetName()) {
			return fmt.Errorf("a Pod is not refused: %w", err)
		}
		return nil
	})
}

func (w *world) isNamespaced(u *unstructured.Unstructured) bool {
	w.t.Helper()
	namespaced, err := w.client.IsObjectNamespaced(u)
	if err != nil {
		w.t.Fatal(err)
	}
	return namespaced
}

func (w *world) eventually(check func(ctx context.Context) error) {
	w.t.Helper()
	testenv.Eventually(w.t, check)
}

// pods waits until Pods of an application are on their nodes, and does with each.
func (w *world) pods(app string, do func(*corev1.Pod)) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		var list corev1.PodList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		if len(list.Items) == 0 || list.Items[0].Spec.NodeName == "" {
			return fmt.Errorf("%d Pods, and none is on a node", len(list.Items))
		}
		for i := range list.Items {
			do(&list.Items[i])
			if err := w.client.Status().Update(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeStatus changes the status of an object, and retries upon a conflict.
func (w *world) changeStatus(obj client.Object, name string, change func()) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
			return err
		}
		change()
		return w.client.Status().Update(ctx, obj)
	})
}

// explain asks.
func (w *world) explain(ctx context.Context, ask string) (explain.Chain, error) {
	ask, on, _ := strings.Cut(w.text(ask), "@")
	ref, err := describe.Named(func() (apimeta.RESTMapper, error) { return w.client.RESTMapper(), nil }, w.namespace, ask)
	if err != nil {
		return explain.Chain{}, err
	}
	world := explain.World{Client: w.asks, Options: options(), Dial: w.dial}
	if on != "" {
		return explain.Cluster(ctx, world, ref, on)
	}
	return explain.Explain(ctx, world, ref)
}

func (w *world) dial(kubeconfig []byte) (client.Client, error) {
	config, err := cluster.ClientConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: w.client.Scheme()})
}

// written is a chain as a failed test shows it.
func written(c *explain.Chain) string {
	var b strings.Builder
	for _, l := range c.Links {
		_, _ = fmt.Fprintf(&b, "\n  %s@%s [%s] %s | next: %s", l.Ref, l.Cluster, l.Reason, l.Sentence, l.Next)
	}
	return b.String()
}

// matches compares a text with one that may have a star in it.
func matches(text, want string) bool {
	if prefix, suffix, open := strings.Cut(want, "*"); open {
		return strings.HasPrefix(text, prefix) && strings.HasSuffix(text, suffix)
	}
	return text == want
}

// check compares a chain with what was planted.
func (s *situation) check(w *world, c *explain.Chain) error {
	root, errs := c.Root(), []error(nil)
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	at := root.String()
	if root.Cluster != "" {
		at += "@" + root.Cluster
	}
	if want := w.text(s.root); !matches(at, want) {
		complain("the root is %s, not %s", at, want)
	}
	if !strings.Contains(root.Sentence, w.text(s.says)) {
		complain("the root does not say %q", w.text(s.says))
	}
	next := strings.ReplaceAll(root.Next, root.Name, "NAME")
	if want := strings.ReplaceAll(w.text(s.next), root.Name, "NAME"); !matches(next, want) {
		complain("next is %q, not %q", next, want)
	}
	var kinds []string
	for _, l := range c.Links {
		kinds = append(kinds, l.Kind)
	}
	if through := strings.Join(kinds, " "); s.through != "" && through != s.through {
		complain("it goes through %s, not %s", through, s.through)
	}
	if !slices.ContainsFunc(c.Links, func(l explain.Link) bool { return strings.Contains(l.Sentence, w.text(s.by)) }) {
		complain("no link says %q", w.text(s.by))
	}
	if owner := cmp.Or(root.Owner, c.Links[0].Owner); s.owner != "" && !matches(owner, w.text(s.owner)) {
		complain("its owner is %q, not %q", owner, s.owner)
	}
	if !strings.Contains(fmt.Sprint(c.Facts), s.fact) {
		complain("no fact says %q: %v", s.fact, c.Facts)
	}
	if _, action, _ := reasons.Of(root.Reason); root.Next == "" && action == "" {
		complain("there is no command and no action")
	}
	errs = append(errs, s.checkTimes(w, c)...)
	if len(errs) > 0 {
		return fmt.Errorf("%w; the chain:%s", errors.Join(errs...), written(c))
	}
	return nil
}

// checkTimes checks that the wanted times are given, and that all of them are
// possible: nothing began before it was planted, and what ends automatically does so later.
func (s *situation) checkTimes(w *world, c *explain.Chain) []error {
	var errs []error
	told := map[string]*time.Time{"deadline": c.Deadline()}
	for i := len(c.Links) - 1; i >= 0; i-- { // as the command shows them: the first that is known
		l := &c.Links[i]
		told["since"], told["until"] = cmp.Or(l.Since, told["since"]), cmp.Or(told["until"], l.Until)
		if l.Since == nil {
			continue
		}
		if since := *l.Since; since.Before(w.began.Add(-s.ago-time.Second)) || since.After(time.Now().Add(time.Second)) {
			errs = append(errs, fmt.Errorf("%s waits since %s, and was planted at %s", l.Ref, since, w.began))
		}
		for _, end := range []*time.Time{l.Until, l.Deadline} {
			if end != nil && !end.After(*l.Since) {
				errs = append(errs, fmt.Errorf("%s ends at %s, and began at %s", l.Ref, end, l.Since))
			}
		}
	}
	for name := range strings.FieldsSeq(s.times) {
		if told[name] == nil {
			errs = append(errs, fmt.Errorf("no %s is given", name))
		}
	}
	return errs
}

// run plants a situation and asks until the answer is right. It is wrong as long as
// controllers have not got stuck yet where they are to.
func (s *situation) run(t *testing.T, c client.Client) {
	w := &world{t: t, client: c, namespace: testenv.NamespaceOn(t, testenv.Shared()), asks: c, began: time.Now()}
	if len(s.sees) > 0 {
		w.sees(s.sees)
	}
	w.apply(s.plant)
	if s.act != nil {
		s.act(w)
	}
	w.eventually(func(ctx context.Context) error {
		chain, err := w.explain(ctx, s.ask)
		if err != nil {
			return err
		}
		return s.check(w, &chain)
	})
	w.tryCommands(s.ask)
}

// tryCommands judges every command of the answer, not only the one that is shown.
func (w *world) tryCommands(ask string) {
	w.t.Helper()
	shell := newShell(w.t)
	w.eventually(func(ctx context.Context) error {
		chain, err := w.explain(ctx, ask)
		if err != nil {
			return err
		}
		shell.exists = w.exists(ctx)
		for i := range chain.Links {
			err = errors.Join(err, shell.next(&chain.Links[i]))
		}
		return err
	})
}

func runAll(t *testing.T, c client.Client, all []situation) {
	for i := range all {
		t.Run(all[i].name, func(t *testing.T) {
			t.Parallel()
			all[i].run(t, c)
		})
	}
}

// In each of these situations explain names the root that was planted, and the command
// that comes next.
func TestExplainNamesTheRoot(t *testing.T) {
	c := testenv.Client(t)
	install(t, c)
	stop := manage(t)
	t.Run("with a manager", func(t *testing.T) {
		runAll(t, c, configSituations)
		runAll(t, c, jobSituations)
		runAll(t, c, policySituations)
		runAll(t, c, podSituations)
		runAll(t, c, zoneSituations)
		runAll(t, c, planSituations)
		runAll(t, c, fleetSituations)
	})
	stop()
	t.Run("without a manager", func(t *testing.T) { runAll(t, c, managerSituations) })
}
