package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/demo"
	"github.com/spillway-dev/spillway/internal/lab/flux"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/shell"
)

const (
	// demoNodes are two nodes in each of three zones.
	demoNodes = 6
	// demoMaxRolling lets two workloads roll at a time, so that others queue.
	demoMaxRolling = 2
	// onceVariable ends the demo's control plane with the demo, for CI.
	onceVariable = "DEMO_ONCE"
)

type demoRun struct {
	env     command.Environment
	cluster command.Cluster
	stop    string
	ofFleet bool
}

// NewDemo returns the command demo.
func NewDemo(env command.Environment) *cobra.Command {
	r := &demoRun{env: env}
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Watch a config change reach running Pods",
		Example: "  spillway demo\n  spillway demo --fleet",
		Long: "Watch a config change reach running Pods. Without --kubeconfig and --context, the\n" +
			"demo starts a control plane of its own, and leaves it running so that you can\n" +
			"continue by hand. With one of them it runs on that cluster, in a namespace that it\n" +
			"removes at the end; so it does with the kinds and the policy that it needs, if the\n" +
			"cluster lacks them.\n" +
			"An interrupted demo removes all that it made.",
		Args: command.None("name a cluster with --kubeconfig or --context"),
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	r.cluster.AddKubeconfigFlags(cmd.Flags())
	cmd.Flags().BoolVar(&r.ofFleet, "fleet", false, "watch a Module roll over three clusters instead; all that it starts is stopped at the end")
	cmd.Flags().StringVar(&r.stop, "stop", "", "stop the control plane that an earlier demo left running, given its folder")
	return cmd
}

func (r *demoRun) run(ctx context.Context) error {
	switch {
	case r.stop != "":
		return stopDemo(r.stop)
	case r.ofFleet:
		return r.fleet(ctx)
	case r.cluster.Kubeconfig != "" || r.cluster.Context != "":
		return r.onCluster(ctx)
	default:
		return r.onOwn(ctx)
	}
}

// onOwn plays on a control plane of the demo's own.
func (r *demoRun) onOwn(ctx context.Context) error {
	assets, err := controlplane.Assets(ctx, r.env.Err)
	if err != nil {
		return r.withoutControlPlane(err)
	}
	if err := controlplane.CompleteWithNodes(assets); err != nil {
		return err
	}
	const ended = "the control plane was stopped, and its folder removed"
	once := r.once()
	started := r.env.Now()
	_, _ = fmt.Fprintln(r.env.Out, "starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and six nodes in three zones")
	cp, err := controlplane.Start(ctx, controlplane.Options{Nodes: demoNodes, Stay: !once, Progress: r.env.Err})
	if err != nil {
		return demoError(ctx, fmt.Errorf("start the control plane: %w", err), nil, ended)
	}
	_, _ = fmt.Fprintf(r.env.Out, "it is ready after %.1f s\n", r.env.Now().Sub(started).Seconds())
	if err = installKinds(ctx, cp.Config(), manager.RingConfig, manager.RingZones); err == nil {
		err = awaitKinds(ctx, cp.Config())
	}
	st := stage{config: cp.Config(), kubeconfig: cp.Kubeconfig(), namespace: "shop", simulated: true}
	st.start = func(path string, args []string) error { return cp.Run(path, args...) }
	if err == nil {
		st.pins, err = bringPins(ctx, st.config, st.namespace)
	}
	if err == nil {
		err = r.tell(ctx, &st)
	}
	if err != nil || once {
		return demoError(ctx, err, cp.Stop(), ended)
	}
	_, _ = fmt.Fprintf(r.env.Out, "\nThe manager and the control plane go on running. To end them:\n\n  %s demo --stop %s\n", os.Args[0], cp.Dir)
	return cp.Leave()
}

type stage struct {
	config                *rest.Config
	kubeconfig, namespace string
	// simulated is true where kubelets are.
	simulated bool
	// pins is the policy of the API server that applies pins there, empty without.
	pins []client.Object
	// start starts the manager.
	start func(path string, args []string) error
}

// tell makes the namespace, starts the manager, and tells the story.
func (r *demoRun) tell(ctx context.Context, st *stage) error {
	if err := makeNamespace(ctx, st.config, st.namespace); err != nil {
		return err
	}
	port, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the manager: %w", err)
	}
	rings := []string{manager.RingConfig}
	withZones, err := knowsKind(st.config, "RolloutGroup")
	if err != nil {
		return err
	}
	withPolicies, err := knowsKind(st.config, policy.Kind)
	if err != nil {
		return err
	}
	options := config.Options{Options: decision.Options{MaxRolling: demoMaxRolling, CoalesceWindow: time.Second}, Zones: withZones}
	if withZones {
		rings = append(rings, manager.RingZones)
	}
	metrics := "127.0.0.1:" + strconv.Itoa(port)
	args := []string{
		"manager", "--rings=" + strings.Join(rings, ","), "--leader-elect=false", "--max-rolling=" + strconv.Itoa(demoMaxRolling),
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=0", "--log-level=debug",
	}
	withPins := withPolicies && len(st.pins) == len(pin.Policy(pin.Namespaces{}))
	if withPins {
		args, options.PinNamespaces = append(args, "--pin-namespaces="+st.namespace), pin.In(st.namespace)
	}
	if st.kubeconfig != "" {
		args = append(args, "--kubeconfig="+st.kubeconfig)
	}
	if r.cluster.Context != "" {
		args = append(args, "--context="+r.cluster.Context)
	}
	if err := st.start(self, args); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	return demo.Run(ctx, demo.Options{
		Config: st.config, Kubeconfig: st.kubeconfig, Namespace: st.namespace, Simulated: st.simulated, Stays: st.simulated && !r.once(),
		MetricsURL: "http://" + metrics + "/metrics", Rings: options, Zones: withZones, Pins: withPins,
		Out: r.env.Out, Width: display.TerminalWidth(r.env.Out), Now: r.env.Now,
		Explain: func(ctx context.Context, object string) error { return r.explain(ctx, st, options, object) },
	})
}

func (r *demoRun) explain(ctx context.Context, st *stage, o config.Options, object string) error {
	ref, err := describe.Named(command.NoOtherKinds, st.namespace, object)
	if err != nil {
		return err
	}
	c, err := command.ClientFor(st.config)
	if err != nil {
		return err
	}
	o.Now = r.env.Now
	why, err := explain.Explain(ctx, explain.World{Client: c, Options: o}, ref)
	if err != nil {
		return err
	}
	display.Chain(r.env.Out, display.StyleOf(r.env.Out, r.env.Lookup), &why, r.env.Now())
	return nil
}

func (r *demoRun) once() bool {
	_, once := r.env.Lookup(onceVariable)
	return once
}

// installKinds makes the kinds of rings known, as install does.
func installKinds(ctx context.Context, cfg *rest.Config, rings ...string) error {
	kinds, err := manifests.KindsOf(rings)
	if err != nil {
		return err
	}
	c, err := command.ClientFor(cfg)
	if err != nil {
		return err
	}
	return (&installing{}).apply(ctx, io.Discard, c, kinds)
}

func knowsKind(cfg *rest.Config, kind string) (bool, error) {
	c, err := command.ClientFor(cfg)
	if err != nil {
		return false, err
	}
	_, err = c.RESTMapper().RESTMapping(v1alpha1.GroupVersion.WithKind(kind).GroupKind())
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the kind %s: %w", kind, err)
	}
	return true, nil
}

// bringPins creates the policy that applies pins in a namespace, by a name of its own. It
// returns what it created: nothing where the API server has no such policies, or where the user
// may not create them.
func bringPins(ctx context.Context, cfg *rest.Config, namespace string) ([]client.Object, error) {
	c, err := command.ClientFor(cfg)
	if err != nil {
		return nil, err
	}
	var created []client.Object
	for _, obj := range pin.Policy(pin.In(namespace)) {
		obj.SetName(namespace + "." + obj.GetName())
		if binding, ok := obj.(*admissionregistrationv1.MutatingAdmissionPolicyBinding); ok {
			binding.Spec.PolicyName = namespace + "." + binding.Spec.PolicyName
		}
		switch err := c.Create(ctx, obj, client.FieldOwner(demoOwner)); {
		case apimeta.IsNoMatchError(err), apierrors.IsForbidden(err):
			return created, nil
		case err != nil:
			return created, fmt.Errorf("create the policy of pins: %w", err)
		}
		created = append(created, obj)
	}
	return created, nil
}

func makeNamespace(ctx context.Context, cfg *rest.Config, name string) error {
	c, err := command.ClientFor(cfg)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// withoutControlPlane says where the demo can play if there is nothing to start here.
func (r *demoRun) withoutControlPlane(err error) error {
	if !errors.Is(err, controlplane.ErrNoScript) {
		return err
	}
	where := "--kubeconfig PATH"
	if raw, err := r.cluster.Loader().RawConfig(); err == nil && raw.Contexts[raw.CurrentContext] != nil {
		where = "--context " + shell.Quote(raw.CurrentContext)
	}
	return fmt.Errorf(`there is no control plane to start here; choose one of:
  %[1]s demo %[2]s   on that cluster, in a namespace that it removes at the end
  make demo   in a clone of https://github.com/spillway-dev/spillway: it fetches or builds a control plane
  KUBEBUILDER_ASSETS=FOLDER %[1]s demo   with %[3]s in that folder`, os.Args[0], where, strings.Join(controlplane.Programs, ", "))
}

func stopDemo(dir string) error {
	err := controlplane.StopAt(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--stop: no control plane runs in %s; name the folder that the demo printed at its end", dir)
	}
	return err
}

const (
	// demoOwner is the field manager of the kinds that the demo brings along.
	demoOwner = "spillway-demo"
	// tidyTimeout is how long the demo may take to remove what it made.
	tidyTimeout = 2 * time.Minute
	// managerStop is how long the demo's manager may take to end.
	managerStop = 10 * time.Second
)

// guest is a demo on a cluster of the user's, and what it has made there.
type guest struct {
	run       *demoRun
	config    *rest.Config
	client    client.Client
	namespace string
	// kinds are those that it brought along, as the API server has them.
	kinds []*unstructured.Unstructured
	// pins is the policy that it brought along.
	pins []client.Object
	// stop ends the manager, and waits until it has ended.
	stop func()
}

// onCluster plays on a cluster of the user's, and leaves nothing there.
func (r *demoRun) onCluster(ctx context.Context) error {
	cfg, err := r.cluster.RESTConfig()
	if err != nil {
		return err
	}
	c, err := command.ClientFor(cfg)
	if err != nil {
		return err
	}
	g := &guest{run: r, config: cfg, client: c, namespace: "spillway-demo-" + strconv.FormatInt(r.env.Now().Unix(), 36), stop: func() {}}
	err = g.bringKinds(ctx)
	if err != nil && len(g.kinds) == 0 {
		return err // nothing was made yet
	}
	if err == nil {
		g.pins, err = bringPins(ctx, cfg, g.namespace)
	}
	if err == nil {
		err = g.play(ctx)
	}
	return demoError(ctx, err, g.tidy(ctx), "the demo removed what it made on the cluster")
}

// play tells the story, which ends early if the manager does.
func (g *guest) play(ctx context.Context) error {
	_, _ = fmt.Fprintf(g.run.env.Out, "on the cluster at %s, in namespace %s\n", g.config.Host, g.namespace)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := g.run.tell(ctx, &stage{
		config: g.config, kubeconfig: g.run.cluster.Kubeconfig, namespace: g.namespace, pins: g.pins,
		start: func(path string, args []string) error {
			return g.startManager(ctx, cancel, path, append(args, "--namespaces="+g.namespace)...)
		},
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause //nolint:wrapcheck // it is an error of this file, or the interruption
	}
	return err
}

// startManager runs the manager until the demo ends; ended is called if it ends earlier.
func (g *guest) startManager(ctx context.Context, ended context.CancelCauseFunc, path string, args ...string) error {
	said := &lastLine{}
	process := exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	process.Stderr = said
	if err := process.Start(); err != nil {
		return err //nolint:wrapcheck // the caller says what was started
	}
	done := make(chan struct{})
	go func() {
		_ = process.Wait() // what it said last is more than its exit code
		ended(fmt.Errorf("the manager of the demo has ended: %s", said))
		close(done)
	}()
	g.stop = func() {
		_ = process.Process.Signal(os.Interrupt) // it may have ended already
		late := clock.RealClock{}.NewTimer(managerStop)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C():
			_ = process.Process.Kill()
			<-done
		}
	}
	return nil
}

// bringKinds makes the kinds known that zones and policies need and the cluster lacks. Who may
// not do that sees the demo without these chapters.
func (g *guest) bringKinds(ctx context.Context) error {
	kinds, err := manifests.KindsOf([]string{manager.RingConfig, manager.RingZones})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		switch err := g.client.Create(ctx, kind, client.FieldOwner(demoOwner)); {
		case apierrors.IsAlreadyExists(err):
		case apierrors.IsForbidden(err):
			return nil // the story says what it leaves out
		case err != nil:
			return fmt.Errorf("make kind %s known: %w", kind.GetName(), err)
		default:
			g.kinds = append(g.kinds, kind)
		}
	}
	return awaitKinds(ctx, g.config)
}

// tidy removes what the demo has made, also after the user has lost patience.
func (g *guest) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	g.stop()
	_, _ = fmt.Fprintf(g.run.env.Out, "\nremoving namespace %s\n", g.namespace)
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := g.client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove namespace %s: %w", g.namespace, err)
	}
	var errs []error
	for _, obj := range g.pins {
		if err := g.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", obj.GetName(), err))
		}
	}
	for _, kind := range g.kinds {
		errs = append(errs, g.removeKind(ctx, kind))
	}
	return errors.Join(errs...)
}

// removeKind takes a kind away again, unless another client has begun to use it meanwhile: with
// a kind all its objects go.
func (g *guest) removeKind(ctx context.Context, kind *unstructured.Unstructured) error {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(kind.GroupVersionKind())
	err := g.client.Get(ctx, client.ObjectKeyFromObject(kind), now)
	if apierrors.IsNotFound(err) || (err == nil && now.GetUID() != kind.GetUID()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove kind %s: %w", kind.GetName(), err)
	}
	used, err := g.isUsed(ctx, now)
	if err != nil {
		return err
	}
	if used {
		_, _ = fmt.Fprintf(g.run.env.Out, "kind %s stays: it is used by others now\n", kind.GetName())
		return nil
	}
	uid, version := now.GetUID(), now.GetResourceVersion()
	if err := g.client.Delete(ctx, now, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove kind %s: %w", kind.GetName(), err)
	}
	_, _ = fmt.Fprintf(g.run.env.Out, "removing kind %s\n", kind.GetName())
	return nil
}

// isUsed is true if another one has written to a kind, such as install, or if it has objects
// in other namespaces.
func (g *guest) isUsed(ctx context.Context, kind *unstructured.Unstructured) (bool, error) {
	ours := func(f metav1.ManagedFieldsEntry) bool { return f.Manager == demoOwner || f.Subresource == "status" }
	if slices.ContainsFunc(kind.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return !ours(f) }) {
		return true, nil
	}
	gvk, err := servedKind(kind)
	if err != nil {
		return true, err
	}
	objects := kube.MetadataList(gvk)
	if err := g.client.List(ctx, objects); err != nil {
		return true, fmt.Errorf("look for objects of kind %s: %w", kind.GetName(), err)
	}
	return slices.ContainsFunc(objects.Items, func(o metav1.PartialObjectMetadata) bool { return o.Namespace != g.namespace }), nil
}

// servedKind is the kind that a definition defines, in its first version.
func servedKind(definition *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	group, _, noGroup := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, noKind := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, noVersions := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err := errors.Join(noGroup, noKind, noVersions); err != nil || len(versions) == 0 {
		return schema.GroupVersionKind{}, fmt.Errorf("definition %s has no version: %w", definition.GetName(), err)
	}
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, nil
}

// awaitKinds waits until the API server serves the kinds that the story needs.
func awaitKinds(ctx context.Context, cfg *rest.Config) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { //nolint:wrapcheck // says of itself what it is
		for _, kind := range []string{"RolloutGroup", policy.Kind} {
			if known, err := knowsKind(cfg, kind); !known || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// demoError is how a demo ends: with its error, or, if it was interrupted, with what has
// become of what it made. That something stays is said in any case.
func demoError(ctx context.Context, err, stays error, tidied string) error {
	if ctx.Err() != nil && stays == nil {
		return errors.New("interrupted: " + tidied)
	}
	return errors.Join(err, stays)
}

// lastLine is a writer that keeps the last line.
type lastLine struct{ line string }

func (l *lastLine) Write(p []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(p)), "\n")
	l.line = lines[len(lines)-1]
	return len(p), nil
}

// String is that line.
func (l *lastLine) String() string {
	if l.line == "" {
		return "it said nothing"
	}
	return l.line
}

// fleetRepository is what the demo's module fetches; the demo itself serves it.
const fleetRepository = "https://git.demo/shop"

// fleetClusters are the workload clusters of the demo, the canary first.
var fleetClusters = []string{"berlin", "paris", "tokyo"}

// fleet tells the story of a fleet on a hub and three further API servers, which end
// with it.
func (r *demoRun) fleet(ctx context.Context) error {
	if r.cluster.Kubeconfig != "" || r.cluster.Context != "" {
		return errors.New("--fleet: it starts a hub and three clusters of its own; leave out --kubeconfig and --context")
	}
	err := r.fleetOnOwn(ctx)
	if errors.Is(err, controlplane.ErrNoScript) {
		return errors.New("there is no hub to start here: run make demo-fleet in a clone of https://github.com/spillway-dev/spillway, which builds API servers and Flux")
	}
	return err
}

func (r *demoRun) fleetOnOwn(ctx context.Context) error {
	_, _ = fmt.Fprintln(r.env.Out, "starting a hub, and three workload clusters: four API servers, and Flux on each")
	hub, err := controlplane.Start(ctx, controlplane.Options{Progress: r.env.Err})
	const ended = "the four API servers were stopped, and their folders removed"
	if err != nil {
		return demoError(ctx, fmt.Errorf("start the hub: %w", err), nil, ended)
	}
	playing, cancel := context.WithCancel(ctx)
	defer cancel()
	err = r.fleetOn(playing, hub)
	return demoError(ctx, err, hub.Stop(), ended)
}

func (r *demoRun) fleetOn(ctx context.Context, hub *controlplane.ControlPlane) error {
	assets, err := flux.Find(ctx, r.env.Err)
	if err != nil {
		return err
	}
	sources, err := flux.Serve()
	if err != nil {
		return err
	}
	defer func() { _ = sources.Close() }() // the demo is over
	if err := r.furnish(ctx, hub, assets, sources, manager.RingFleet); err != nil {
		return err
	}
	o := demo.FleetOptions{
		Hub: hub.Config(), Repository: fleetRepository, Out: r.env.Out, Width: display.TerminalWidth(r.env.Out),
		Publish: func(ctx context.Context, tag, manifest string) error {
			_, err := sources.Publish(ctx, fleetRepository, tag, map[string]string{"all.yaml": manifest})
			return err
		},
	}
	for _, name := range fleetClusters {
		cp, err := hub.Beside(ctx)
		if err != nil {
			return fmt.Errorf("start cluster %s: %w", name, err)
		}
		if err := r.furnish(ctx, cp, assets, sources, manager.RingAssemblage); err != nil {
			return err
		}
		kubeconfig, err := os.ReadFile(cp.Kubeconfig())
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		o.Members = append(o.Members, demo.Member{Name: name, Config: cp.Config(), Kubeconfig: kubeconfig})
	}
	return demo.RunFleet(ctx, o)
}

// furnish installs what a cluster of the fleet needs, and runs Flux and a manager there.
func (r *demoRun) furnish(ctx context.Context, cp *controlplane.ControlPlane, assets flux.Assets, sources *flux.Sources, ring string) error {
	if err := assets.Install(ctx, cp.Config()); err != nil {
		return err
	}
	if err := installKinds(ctx, cp.Config(), ring); err != nil {
		return err
	}
	if err := sources.Play(ctx, cp.Config()); err != nil {
		return err
	}
	if err := assets.Run(cp); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the manager: %w", err)
	}
	return cp.Run(self, "manager", "--rings="+ring, "--kubeconfig="+cp.Kubeconfig(), "--leader-elect=false",
		"--allow-cluster-addresses=127.0.0.0/8", // where the demo's clusters are
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
}
