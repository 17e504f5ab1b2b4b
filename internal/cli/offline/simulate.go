package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
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
	"github.com/spillway-dev/spillway/internal/config/content"
	config "github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	plans "github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/rollout"
)

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

// simulatedLine is a step or a wait.
type simulatedLine struct {
	at record.Offset
	// steps is how many steps it is: none if it is a wait.
	steps      int
	head, text string
}

func (s *simulation) write(w io.Writer, r *simulate.Result, o *simulate.Options) {
	number := 0
	for _, l := range s.lines(r) {
		mark := ""
		if l.steps > 0 {
			mark = fmt.Sprintf("%d.", number+1)
			number += l.steps
		}
		display.WriteHanging(w, fmt.Sprintf("%4s %8s  %-6s ", mark, l.at, l.head), l.text)
	}
	s.writeEnd(w, r, o)
}

func (s *simulation) lines(r *simulate.Result) []simulatedLine {
	all := s.steps(r)
	waits := slices.DeleteFunc(slices.Clone(r.Waits), func(w record.Wait) bool { return slices.Contains(passing, w.Reason) })
	for wait, text := range few(waits, waitText) {
		all = append(all, simulatedLine{wait.At, 0, "waits", s.placed(wait.Namespace, text)})
	}
	slices.SortStableFunc(all, func(a, b simulatedLine) int { return cmp.Compare(a.at, b.at) })
	return all
}

// eachCluster is how many clusters of a stage are shown one by one. More are one line.
const eachCluster = 20

// steps are those that were taken; of a stage with many clusters all that do the same together.
func (s *simulation) steps(r *simulate.Result) []simulatedLine {
	var all []simulatedLine
	together := map[record.Step][]record.Step{}
	for _, step := range r.Steps {
		if step.Ring == record.RingFleet {
			key := clusters(r, step)
			together[key] = append(together[key], step)
		}
	}
	for _, step := range r.Steps {
		stage := clusters(r, step)
		switch many := together[stage]; {
		case len(many) <= eachCluster:
			all = append(all, simulatedLine{step.At, 1, step.Ring, s.placed(step.Namespace, step.String())})
		case many[0] == step:
			stage.Unit = strings.TrimSpace(fmt.Sprintf("%s %d clusters", stage.Unit, len(many)))
			stage.Does = strings.Replace(stage.Does, "is", "are", 1)
			text := fmt.Sprintf("%s: %s first, %s last at %s", stage, many[0].Unit, many[len(many)-1].Unit, many[len(many)-1].At)
			all = append(all, simulatedLine{step.At, len(many), step.Ring, s.placed(step.Namespace, text)})
		}
	}
	return all
}

// clusters is a step of the fleet without what differs between the clusters of a stage, and with that in place of the cluster.
func clusters(r *simulate.Result, step record.Step) record.Step {
	stage := ""
	for i := range r.Stages {
		if of := &r.Stages[i]; of.Object == step.Object && of.Namespace == step.Namespace && of.Begun <= step.At {
			stage = "stage " + of.Name + ":"
		}
	}
	step.At, step.Decision, step.Unit = 0, 0, stage
	return step
}

// passing are the reasons that say no more than that a step takes its time, or waits
// for one that does.
var passing = []rollout.Reason{
	"", rollout.ReasonProgressing, rollout.ReasonOrder, rollout.ReasonTurn, rollout.ReasonBudget, config.ReasonCoalescing, plans.ReasonInProgress,
}

func (s *simulation) writeEnd(w io.Writer, r *simulate.Result, o *simulate.Options) {
	switch {
	case len(r.Steps) == 0 && r.Settled && r.Took == 0:
		_, _ = fmt.Fprintln(w, "nothing is rolled")
	case r.Settled && o.Readiness.Default != world.Never:
		display.WriteHanging(w, "", takes(r, o))
	}
	if len(r.Assumed) > 0 {
		_, _ = fmt.Fprintln(w, "unknown, and assumed to exist:")
	}
	for i := range r.Assumed {
		a := &r.Assumed[i]
		display.WriteHanging(w, "  ? ", s.placed(a.Namespace, a.Object+": "+a.Why))
	}
	if len(r.Stuck)+len(r.Risks) > 0 {
		_, _ = fmt.Fprintln(w, "what could get stuck:")
	}
	for wait, text := range few(r.Stuck, func(w record.Wait) string { return s.stuck(r, w) }) {
		display.WriteHanging(w, s.mark(r, wait), s.placed(wait.Namespace, text))
	}
	for _, risk := range r.Risks {
		display.WriteHanging(w, "  ! ", s.placed(risk.Namespace, risk.Object+": "+risk.Sentence+"; "+risk.Action))
	}
}

// alike is how many waits are shown of those that differ in nothing but the object.
const alike = 3

// few are of waits that differ in nothing but the object a few, each as its text says it. The
// last one says how many more there are.
func few(waits []record.Wait, text func(record.Wait) string) iter.Seq2[record.Wait, string] {
	same := func(w record.Wait) string {
		return w.At.String() + w.Namespace + strings.ReplaceAll(text(w), w.Object[strings.LastIndex(w.Object, "/")+1:], "*")
	}
	number, shown := map[string]int{}, map[string]int{}
	for _, w := range waits {
		number[same(w)]++
	}
	return func(yield func(record.Wait, string) bool) {
		for _, w := range waits {
			key, said := same(w), text(w)
			if shown[key]++; shown[key] > alike {
				continue
			}
			if rest := number[key] - alike; shown[key] == alike && rest > 0 {
				said += fmt.Sprintf("; and %d more for the same reason", rest)
			}
			if !yield(w, said) {
				return
			}
		}
	}
}

// takes says how long it takes, and what is assumed of Pods for that.
func takes(r *simulate.Result, o *simulate.Options) string {
	format := "takes %s, if each Pod is ready within %s and stops within %s"
	if len(r.Prepared) > 0 {
		format = "takes %s, if each Pod is ready within %s, stops within %s, and prepares for a downscale immediately when it is called"
	}
	return fmt.Sprintf(format, time.Duration(r.Took), readyText(o.Readiness), stopText(o.Stop))
}

// placed names the namespace of what is not in the usual one.
func (s *simulation) placed(namespace, text string) string {
	if namespace == s.namespace || namespace == "" {
		return text
	}
	return namespace + " " + text
}

// mark says of what waits in the end whether anything ends that.
func (s *simulation) mark(r *simulate.Result, w record.Wait) string {
	switch {
	case r.WaitedBefore(w):
		return "  - "
	case !w.Next.IsZero():
		return "  ? "
	default:
		return "  ✗ "
	}
}

// stuck says of what waits in the end what ends that.
func (s *simulation) stuck(r *simulate.Result, w record.Wait) string {
	switch text := waitText(w); {
	case r.WaitedBefore(w):
		return text + ", as before the change" + actionOf(w)
	case !w.Next.IsZero():
		return fmt.Sprintf("%s; not seen to the end within %s: the next look is on %s; use --within", text, s.ahead(), rollout.Clock(w.Next))
	case w.Reason == config.ReasonConfigMissing:
		return text + actionOf(w) + "; if it exists elsewhere, name it with --assume"
	default:
		return text + actionOf(w)
	}
}

// waitText is the sentence of a wait, which may name its object already.
func waitText(w record.Wait) string {
	if w.Ring == record.RingConfig || w.Ring == record.Kubernetes {
		return w.Sentence
	}
	return w.Object + ": " + w.Sentence
}

func stopText(stop *time.Duration) string {
	if stop == nil {
		return "its grace period"
	}
	return stop.String()
}

func readyText(r world.Readiness) string {
	text := r.Default.String()
	if len(r.Of) > 0 {
		text += ", or as --ready says,"
	}
	return text
}

// actionOf is what to do about a wait that nothing ends.
func actionOf(w record.Wait) string {
	if _, action, ok := reasons.Of(w.Reason); ok {
		return "; " + action
	}
	return ""
}

// assumeFile stands beside manifests, and names what --assume would, one a line.
const assumeFile = ".spillwayassume"

// lacks are the config that Pods of the manifests need and no manifest has, each with the
// keys that are needed.
type lacks map[content.Object]map[string]bool

// assumptions are the config that is taken to exist though no manifest has it: what a
// person has named, and what something among the manifests may make.
func (s *simulation) assumptions() ([]simulate.Assumption, error) {
	asked, fromFiles, err := s.asked()
	if err != nil {
		return nil, err
	}
	m, err := s.copied()
	if err != nil {
		return nil, err
	}
	missing := lacksOf(m)
	var assumed []simulate.Assumption
	met := map[content.Object]bool{}
	for _, ref := range slices.SortedFunc(maps.Keys(missing), content.Object.Compare) {
		anywhere := content.Object{Kind: ref.Kind, Name: ref.Name}
		why := m.PossibleMaker(ref)
		switch {
		case asked[anywhere]:
			met[anywhere], why = true, "--assume"
		case fromFiles[anywhere] != "":
			why = fromFiles[anywhere]
		case why == "":
			continue
		}
		assumed = append(assumed, simulate.Assume(ref, slices.Sorted(maps.Keys(missing[ref])), why))
	}
	for ref := range asked {
		if !met[ref] {
			return nil, fmt.Errorf("--assume: no Pod lacks %s %s; correct the name, or leave it out", ref.Kind, ref.Name)
		}
	}
	return assumed, nil
}

// copied are the manifests as lint reads them, which completes what it reads.
func (s *simulation) copied() (*manifest.Manifests, error) {
	scheme, err := kube.NewScheme()
	if err != nil {
		return nil, err
	}
	documents := slices.Clone(s.documents)
	for i := range documents {
		documents[i].Object = documents[i].Object.DeepCopy()
	}
	return manifest.New(documents, nil, manifest.Options{Scheme: scheme, Namespace: s.namespace, Now: s.env.Now()}), nil
}

func lacksOf(m *manifest.Manifests) lacks {
	missing := lacks{}
	for _, o := range m.Objects {
		template, _ := o.Pods()
		if template == nil {
			continue
		}
		for _, use := range content.References(o.Namespace(), &template.Spec, nil, false) {
			if !use.Required || m.Configs[use.Object] != nil {
				continue
			}
			if missing[use.Object] == nil {
				missing[use.Object] = map[string]bool{}
			}
			for _, key := range use.Keys {
				missing[use.Object][key.Name] = true
			}
		}
	}
	return missing
}

// asked is what --assume names, and what files beside the manifests name, each with its
// file; whatever the namespace.
func (s *simulation) asked() (asked map[content.Object]bool, fromFiles map[content.Object]string, err error) {
	asked, fromFiles = map[content.Object]bool{}, map[content.Object]string{}
	for _, text := range s.assume {
		ref, ok := assumable(text)
		if !ok {
			return nil, nil, fmt.Errorf("--assume: %q cannot be read; name config as secret/NAME or configmap/NAME", text)
		}
		asked[ref] = true
	}
	for _, path := range slices.Concat(s.files, s.changes) {
		if err := readAssumptions(path, fromFiles); err != nil {
			return nil, nil, err
		}
	}
	return asked, fromFiles, nil
}

// readAssumptions reads the file beside a manifest, or in a directory of manifests.
func readAssumptions(path string, into map[content.Object]string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // standard input has none, and what cannot be read was refused before
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	file := filepath.Join(path, assumeFile)
	raw, err := os.ReadFile(file) //nolint:gosec // beside the manifests that a person has named
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &source.Error{File: file, Problem: "cannot be read: " + err.Error(), Action: "make it a readable file, or delete it"}
	}
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		ref, ok := assumable(text)
		if !ok {
			return &source.Error{File: file, Line: number, Problem: fmt.Sprintf("%q cannot be read", text), Action: "name config as secret/NAME or configmap/NAME, one on a line"}
		}
		into[ref] = file
	}
	return nil
}

// assumable is the ConfigMap or the Secret that a text names.
func assumable(text string) (content.Object, bool) {
	ref, ok := command.NamedAs(strings.ToLower(text), string(content.ConfigMap), string(content.Secret))
	return content.Object{Kind: content.Kind(ref.Kind), Name: ref.Name}, ok
}
