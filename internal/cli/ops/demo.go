package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// demoRun is one run of the demo command.
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

// stage is where the story plays.
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

// explain shows why an object waits, as the command explain does.
func (r *demoRun) explain(ctx context.Context, st *stage, o config.Options, object string) error {
	ref, err := describe.Named(command.NoOtherKinds, st.namespace, object)
	if err != nil {
		return err
	}
	c, err := connect(st.config)
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
	c, err := connect(cfg)
	if err != nil {
		return err
	}
	return (&installing{}).apply(ctx, io.Discard, c, kinds)
}

func connect(cfg *rest.Config) (client.Client, error) {
	known, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// knowsKind is true if a cluster has a kind of Spillway.
func knowsKind(cfg *rest.Config, kind string) (bool, error) {
	c, err := connect(cfg)
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
	c, err := connect(cfg)
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
	c, err := connect(cfg)
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

// stopDemo ends what an earlier demo left running in a folder.
func stopDemo(dir string) error {
	err := controlplane.StopAt(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--stop: no control plane runs in %s; name the folder that the demo printed at its end", dir)
	}
	return err
}
