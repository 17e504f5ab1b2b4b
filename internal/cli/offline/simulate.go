package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/source"
)

// simulation is one run of the command.
type simulation struct {
	env command.Environment
	// called is the name of the command.
	called         string
	cluster        command.Cluster
	fromCluster    bool
	everywhere     bool
	rings          command.RingFlags
	files, changes []string
	since          string
	namespace      string
	ready          []string
	stop           string
	at             string
	within         time.Duration
	nodes          int
	output         string
	assume         []string
	unprepared     []string
	gates          []string
	// documents are where all manifests stand.
	documents []source.Document
}

// NewSimulate returns the command simulate.
func NewSimulate(env command.Environment) *cobra.Command {
	s := &simulation{env: env, called: "simulate"}
	cmd := &cobra.Command{
		Use:   "simulate -f DIR [--change FILE]",
		Short: "Show what a change would do, without a cluster",
		Long: "Show what a change would do, without a cluster: the steps in their order, how long\n" +
			"they take if Pods stop and become ready in time, and what could get stuck. The\n" +
			"manifests of -f run already; those of --change are applied over them. Without\n" +
			"--change the command shows the first installation. It runs the code of the manager.\n" +
			"The exit code is 1 if the change would not complete, or not within --within.\n" +
			"\n" +
			"Config that no manifest has, and that a Job, an operator or another controller among\n" +
			"them may create, is taken to exist, and listed as unknown. Name what else exists with\n" +
			"--assume, or in a file " + assumeFile + " beside the manifests.\n" +
			"\n" +
			"With --cluster the present state is read from a cluster, with your permissions and\n" +
			"without writes, and the manifests of -f and --change are applied over it. The version\n" +
			"of Kubernetes is then that of the cluster, and otherwise 1.37.",
		Example: "  spillway simulate -f shop --change shop-next/config.yaml --ready 45s\n" +
			"  spillway simulate --cluster -n shop --change new-image.yaml",
		Args: command.None("name manifests with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd)
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&s.at, "at", "", "when the change is made, such as 2026-05-04T12:00:00Z; messages then have times of day, and otherwise times since the change, such as +1m0s (default: now)")
	cmd.Flags().DurationVar(&s.within, "within", 0, "how far to look ahead (default: 8 days)")
	command.OutputFlag(cmd, &s.output)
	return cmd
}

// addFlags adds the flags about the change, and about the world in which it is made.
func (s *simulation) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&s.files, "filename", "f", nil, "files and directories of manifests that run already; - is standard input")
	flags.StringSliceVar(&s.changes, "change", nil, "files and directories of manifests to apply as the change")
	flags.StringVar(&s.since, "since", "", "a revision of git, such as origin/main: what runs already is what the manifests of -f were then, and the change is what they are now")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "namespace of manifests that name none, and with --cluster the one to read (default: default; with --cluster that of the context)")
	flags.BoolVar(&s.fromCluster, "cluster", false, "read the present state from a cluster")
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, "with --cluster: read all namespaces")
	flags.StringArrayVar(&s.ready, "ready", []string{world.DefaultReady.String()}, "how long Pods take to become ready: 30s for all, sts/x=2m for some, job/y=never, deploy/z@new=never for what the change brings")
	flags.StringArrayVar(&s.assume, "assume", nil, "config that exists though no manifest has it: secret/NAME or configmap/NAME; repeat it for several")
	flags.StringArrayVar(&s.unprepared, "unprepared", nil, "Pods that fail when they are called to prepare for a downscale: statefulset/NAME or pod/NAME; repeat it for several")
	flags.StringArrayVar(&s.gates, "gate", nil, "what becomes of the gates of a name: NAME=pass, NAME=fail or NAME=no-data; repeat it for several (default: they wait)")
	flags.StringVar(&s.stop, "stop", "", "how long Pods take to stop, such as 10s (default: their whole grace period)")
	flags.IntVar(&s.nodes, "nodes", 3, "how many nodes DaemonSets run on")
	s.rings.Add(flags)
	s.cluster.AddFlags(flags)
}

func (s *simulation) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	options, base, change, err := s.world(cmd)
	if err != nil {
		return err
	}
	command.SpendMemory()
	result, err := s.play(cmd, base, change, options)
	if err != nil {
		return simulate.Locate(err, s.documents)
	}
	if len(result.Unmet) > 0 {
		return fmt.Errorf("--ready: there is no %s in what is simulated; correct the name, or leave it out", strings.Join(result.Unmet, " and no "))
	}
	if len(result.UnmetUnprepared) > 0 {
		return fmt.Errorf("--unprepared: there is no %s in what is simulated; correct the name, or leave it out", strings.Join(result.UnmetUnprepared, " and no "))
	}
	if len(result.UnmetGates) > 0 {
		return fmt.Errorf("--gate: no rollout reaches a gate %s; correct the name, or leave it out", strings.Join(result.UnmetGates, " and none a gate "))
	}
	if s.at == "" && !s.fromCluster {
		result.CountMoments(options.Now)
	}
	err = command.Show(out, s.output, result, func(w io.Writer) { s.write(w, &result, &options) })
	if err == nil && !result.Settled {
		err = s.unsettled(&result)
	}
	return err
}

// world reads what the flags say: the world, what runs in it, and the change.
func (s *simulation) world(cmd *cobra.Command) (o simulate.Options, base, change []*unstructured.Unstructured, err error) {
	if o, err = s.options(); err != nil {
		return o, nil, nil, err
	}
	if base, change, err = s.read(cmd.Context(), cmd.InOrStdin()); err != nil {
		return o, nil, nil, err
	}
	if s.fromCluster {
		if err := s.look(cmd.Context(), &o, change); err != nil {
			return o, nil, nil, err
		}
	}
	o.Namespace = s.namespace
	o.Assumed, err = s.assumptions()
	return o, base, change, err
}

// play plays the change, and says on a terminal how far that is.
func (s *simulation) play(cmd *cobra.Command, base, change []*unstructured.Unstructured, o simulate.Options) (simulate.Result, error) {
	var played atomic.Int64
	o.Progress = func(after time.Duration) { played.Store(int64(after)) }
	far := func() string {
		return "playing the change: +" + time.Duration(played.Load()).Round(time.Second).String()
	}
	return display.Working(cmd.Context(), display.NewProgress(cmd.ErrOrStderr(), s.env.Now), far, func() (simulate.Result, error) {
		return simulate.Run(cmd.Context(), base, change, o)
	})
}

// unsettled says whether a rollout does not complete, or not within the time that was simulated.
func (s *simulation) unsettled(r *simulate.Result) error {
	for _, wait := range r.Stuck {
		if wait.Next.IsZero() && !r.WaitedBefore(wait) {
			return errors.New("the rollout does not complete; see above")
		}
	}
	return fmt.Errorf("the rollout does not complete within %s; use --within to look further ahead", s.ahead())
}

// ahead is how far is looked ahead.
func (s *simulation) ahead() string {
	if s.within == 0 {
		return fmt.Sprintf("%d days", world.Horizon/(24*time.Hour))
	}
	return s.within.String()
}

// read reads what runs already, and the change. With a cluster all of it is the change.
func (s *simulation) read(ctx context.Context, stdin io.Reader) (base, change []*unstructured.Unstructured, err error) {
	switch {
	case s.everywhere && !s.fromCluster:
		return nil, nil, errors.New("--all-namespaces: only valid with --cluster")
	case !s.fromCluster && s.cluster.Connects() != "":
		return nil, nil, fmt.Errorf("--%s: only valid with --cluster", s.cluster.Connects())
	case s.fromCluster && s.at != "":
		return nil, nil, errors.New("--at: not valid with --cluster, which reads the present state")
	case s.since != "" && (s.fromCluster || len(s.changes) > 0 || slices.Contains(s.files, source.Stdin)):
		return nil, nil, errors.New("--since: not valid with --cluster, --change or standard input; the change is what -f has now")
	case s.fromCluster && len(s.files)+len(s.changes) == 0:
		return nil, nil, fmt.Errorf("name the change: spillway %s --cluster --change FILE", s.called)
	case s.fromCluster:
		change, err = s.manifests(stdin, slices.Concat(s.files, s.changes))
		return nil, change, err
	case slices.Contains(s.files, source.Stdin) && slices.Contains(s.changes, source.Stdin):
		return nil, nil, errors.New("--change: standard input is what -f reads; name a file for one of them")
	case len(s.files) == 0:
		return nil, nil, fmt.Errorf("name the manifests that run already: spillway %s -f DIR", s.called)
	}
	s.namespace = cmp.Or(s.namespace, "default")
	if s.since != "" {
		return s.readSince(ctx)
	}
	if base, err = s.manifests(stdin, s.files); err != nil || len(s.changes) == 0 {
		return base, nil, err
	}
	change, err = s.manifests(stdin, s.changes)
	return base, change, err
}

// readSince reads what the manifests were in a revision of git, and of what they are now the objects that are others.
func (s *simulation) readSince(ctx context.Context) (base, change []*unstructured.Unstructured, err error) {
	if base, err = s.checked(source.ReadRevision(ctx, s.since, s.treeOptions(), s.files...)); err != nil {
		return nil, nil, fmt.Errorf("--since: %w", err)
	}
	now, err := s.manifests(nil, s.files)
	if err != nil {
		return nil, nil, err
	}
	key := func(u *unstructured.Unstructured) string {
		return u.GroupVersionKind().String() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	had := make(map[string]map[string]any, len(base))
	for _, u := range base {
		had[key(u)] = u.Object
	}
	change = slices.DeleteFunc(slices.Clone(now), func(u *unstructured.Unstructured) bool { return reflect.DeepEqual(had[key(u)], u.Object) })
	if len(change) == 0 { // then nothing happens, and that is shown as always
		change = now
	}
	return base, change, nil
}

// look reads the present state of the cluster that is meant.
func (s *simulation) look(ctx context.Context, o *simulate.Options, change []*unstructured.Unstructured) error {
	s.cluster.Namespace = s.namespace
	reader, namespace, err := s.cluster.Connect()
	if err != nil {
		return err
	}
	if s.namespace = namespace; s.everywhere {
		namespace = ""
	}
	o.Installed = reader.RESTMapper()
	if o.Version, err = s.cluster.ServerVersion(); err != nil {
		return err
	}
	o.Present, err = simulate.Present(ctx, reader, namespace, change...)
	return err
}

// options checks the flags.
func (s *simulation) options() (simulate.Options, error) {
	o := simulate.Options{Now: s.env.Now(), Nodes: s.nodes, Within: s.within}
	var err error
	if s.at != "" {
		if o.Now, err = time.Parse(time.RFC3339, s.at); err != nil {
			return o, fmt.Errorf("--at: %q is not a time; write it as 2026-05-04T12:00:00Z", s.at)
		}
	}
	if s.within < 0 {
		return o, fmt.Errorf("--within: %s is not ahead; use a time such as 2h, or leave it out", s.within)
	}
	if s.nodes < 1 {
		return o, fmt.Errorf("--nodes: %d are too few; use 1 or more", s.nodes)
	}
	if o.Readiness, err = readiness(s.ready); err != nil {
		return o, err
	}
	if o.Stop, err = stopping(s.stop); err != nil {
		return o, err
	}
	if o.Unprepared, err = unprepared(s.unprepared); err != nil {
		return o, err
	}
	if o.Gates, err = gatesOf(s.gates); err != nil {
		return o, err
	}
	if s.namespace != "" {
		if err := command.CheckNamespaces("namespace", s.namespace); err != nil {
			return o, err
		}
	}
	o.Config, err = s.rings.Options(s.env.Now)
	return o, err
}

// stopping reads the value of --stop, which is nil if there is none.
func stopping(value string) (*time.Duration, error) {
	if value == "" {
		return nil, nil //nolint:nilnil // nothing is said of it
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return nil, fmt.Errorf(`--stop: %q cannot be read; write a time such as "10s"`, value)
	}
	return &d, nil
}

// unprepared reads the values of --unprepared.
func unprepared(values []string) ([]string, error) {
	var all []string
	for _, value := range values {
		ref, ok := command.NamedAs(strings.ToLower(value), workload.StatefulSet, "Pod")
		if !ok {
			return nil, fmt.Errorf("--unprepared: %q cannot be read; write statefulset/NAME or pod/NAME", value)
		}
		all = append(all, strings.ToLower(ref.Kind)+"/"+ref.Name)
	}
	return all, nil
}

// gatesOf reads the values of --gate.
func gatesOf(values []string) (map[string]v1alpha1.GateResult, error) {
	all := map[string]v1alpha1.GateResult{}
	for _, value := range values {
		name, result, err := simulate.ParseGate(value)
		if err != nil {
			return nil, fmt.Errorf("--gate: %w", err)
		}
		all[name] = result
	}
	return all, nil
}

// readiness reads the values of --ready.
func readiness(values []string) (world.Readiness, error) {
	r := world.Readiness{Default: world.DefaultReady}
	for _, value := range values {
		of, text, some := strings.Cut(value, "=")
		if !some {
			of, text = "", value
		}
		d, readable := readyTime(text)
		of, revision, ofRevision := strings.Cut(of, "@")
		if !readable || some && strings.Count(of, "/") != 1 || ofRevision && revision == "" {
			return r, fmt.Errorf(`--ready: %q cannot be read; write a time such as "30s" for all Pods, or "statefulset/x=2m", "job/y=never" or "deployment/z@new=never"`, value)
		}
		if !some {
			r.Default = d
			continue
		}
		if err := setReady(&r, of, revision, d); err != nil {
			return r, err
		}
	}
	return r, nil
}

// readyTime is a time, or never.
func readyTime(text string) (d time.Duration, ok bool) {
	if text == "never" {
		return world.Never, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// setReady sets the time of an object, of one revision of it if that is named.
func setReady(r *world.Readiness, of, revision string, d time.Duration) error {
	key, ok := readyKey(of)
	if !ok {
		return fmt.Errorf("--ready: nothing of the kind of %q takes its time; name it as deployment/NAME, statefulset/NAME, daemonset/NAME, job/NAME, pod/NAME or cluster/NAME", of)
	}
	if revision != "" {
		key += "@" + revision
	}
	r.Set(key, d)
	return nil
}

// readyKey is what takes its time, by the names that kubectl takes for its kind.
func readyKey(of string) (key string, ok bool) {
	if kind, name, _ := strings.Cut(strings.ToLower(of), "/"); (kind == "cluster" || kind == "clusters") && name != "" {
		return "cluster/" + name, true
	}
	ref, ok := command.NamedAs(strings.ToLower(of), workload.Deployment, workload.StatefulSet, workload.DaemonSet, "Job", "Pod")
	return strings.ToLower(ref.Kind) + "/" + ref.Name, ok
}

// manifests reads manifests, and finds what no API server would take.
func (s *simulation) manifests(stdin io.Reader, paths []string) ([]*unstructured.Unstructured, error) {
	return s.checked(source.ReadTree(stdin, s.treeOptions(), paths...))
}

func (s *simulation) treeOptions() source.Options {
	return source.Options{NotText: func(path string) { tellNotText(s.env.Err, path) }}
}

// checked are the objects of manifests that were read.
func (s *simulation) checked(documents []source.Document, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	kinds, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	s.documents = append(s.documents, documents...)
	objects := make([]*unstructured.Unstructured, 0, len(documents))
	for i := range documents {
		objects = append(objects, documents[i].Object)
	}
	return objects, simulate.Check(documents, kinds)
}
