package act

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/steering"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Verb is what a person does, as commands name it.
type Verb string

// The verbs.
const (
	Pause    Verb = "pause"
	Resume   Verb = "resume"
	Retry    Verb = "retry"
	Approve  Verb = "approve"
	Refuse   Verb = "refuse"
	Rollback Verb = "rollback"
	Pin      Verb = "pin"
	Unpin    Verb = "unpin"
)

// The kinds that can be acted upon. A gate is decided by its name, or by what waits for it.
var (
	PausedKinds  = slices.Concat(command.RolledKinds, command.ReleasingKinds)
	RetriedKinds = []string{"RolloutGroup", describe.KindConfigMap, describe.KindSecret, describe.KindModule, describe.KindBootstrap}
	GatedKinds   = []string{describe.KindGate, "RolloutGroup", "Instance", describe.KindPolicy, describe.KindModule, describe.KindBootstrap}
)

// Verbs are what can be done to objects of a kind.
func Verbs(kind string) []Verb {
	kinds := []struct {
		verbs []Verb
		of    []string
	}{
		{[]Verb{Pause, Resume}, PausedKinds},
		{[]Verb{Retry}, append([]string{describe.KindInstance}, RetriedKinds...)},
		{[]Verb{Approve, Refuse}, GatedKinds},
		{[]Verb{Rollback}, []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet, describe.KindModule, describe.KindBootstrap}},
		{[]Verb{Pin, Unpin}, []string{describe.KindModule, describe.KindBootstrap}},
	}
	var verbs []Verb
	for _, k := range kinds {
		if slices.Contains(k.of, kind) {
			verbs = append(verbs, k.verbs...)
		}
	}
	return verbs
}

// Request is what a person wants to do, to which object.
type Request struct {
	describe.Ref

	Verb Verb
	// To is the revision of a rollback; empty for the one before.
	To string
	// Cluster is the one to pin or unpin.
	Cluster string
}

// Args are the arguments of the command that does the same.
func Args(r Request) []string {
	args := []string{string(r.Verb), r.String()}
	switch {
	case isModule(r.Kind) && (r.Verb == Rollback || r.Verb == Pin || r.Verb == Unpin):
		args = append([]string{"fleet"}, args...)
	case r.Kind == describe.KindInstance && r.Verb == Retry: // an Instance is retried as "plan retry" does
		args = []string{"plan", string(r.Verb), r.Name}
	}
	for _, flag := range [][2]string{{"-n", r.Namespace}, {"--to", r.To}, {"--cluster", r.Cluster}} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	return args
}

// Words are [Args] as a shell takes them.
func Words(r Request) []string {
	words := Args(r)
	for i, word := range words {
		words[i] = shell.Quote(word)
	}
	return words
}

// Write is what an act writes: one object, if it is still as it was read.
type Write struct {
	// Object is as it is to be.
	Object client.Object
	// Said is what has been done once it is written.
	Said string
	// Next is what holds from then on, and how to end it; empty if Said says all.
	Next string
	// Word is the reason of the Event, About the object that it is about.
	Word  rollout.Reason
	About corev1.ObjectReference

	// before is the object as it was read, nil of one that does not exist yet.
	before client.Object
	// verdict is that of a gate, which its status holds.
	verdict bool
}

// Prepare says what an act would write, as things are. Nothing is written.
func Prepare(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	if !slices.Contains(Verbs(r.Kind), r.Verb) {
		return nil, fmt.Errorf("cannot %s %s", r.Verb, r.Ref)
	}
	switch r.Verb {
	case Approve, Refuse:
		return prepareVerdict(ctx, c, r, who)
	case Pin, Unpin:
		return preparePin(ctx, c, r, who)
	case Rollback:
		if isModule(r.Kind) {
			return prepareModule(ctx, c, r, who)
		}
		return prepareWorkload(ctx, c, r, who)
	default:
		return prepareEdit(ctx, c, r, who)
	}
}

func isModule(kind string) bool { return kind == model.KindModule || kind == model.KindBootstrap }

// Do does what a person wants. When it loses a conflict it starts again: the manager writes
// there as well.
func Do(ctx context.Context, c client.Client, r Request, who Author) (w *Write, err error) {
	err = OnConflict(r.String(), func() error {
		if w, err = Prepare(ctx, c, r, who); err != nil {
			return err
		}
		return w.Write(ctx, c)
	})
	return w, err
}

// Version is the resourceVersion of the object as it was read, empty of one that does not
// exist yet.
func (w *Write) Version() string {
	if w.before == nil {
		return ""
	}
	return w.before.GetResourceVersion()
}

// Write writes the object, if it is still as it was read.
func (w *Write) Write(ctx context.Context, c client.Client) error {
	switch {
	case w.verdict:
		return WriteVerdict(ctx, c, w.Object, w.before)
	case w.before != nil:
		return Patch(ctx, c, w.Object, w.before)
	}
	if err := c.Create(ctx, w.Object, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("create %s: %w", Name(c, w.Object), err)
	}
	return nil
}

// Record records in an Event who did it, and why.
func (w *Write) Record(ctx context.Context, c client.Client, who Author, now time.Time) error {
	if w.About.Name == "" { // a gate of which the owner is not known
		return nil
	}
	return RecordEvent(ctx, c, w.About, w.Word, who, now)
}

// Needs is the permission that the write takes.
func (w *Write) Needs(c client.Client) (authorizationv1.ResourceAttributes, error) {
	gvk, err := c.GroupVersionKindFor(w.Object)
	if err != nil {
		return authorizationv1.ResourceAttributes{}, fmt.Errorf("kind of %s: %w", w.Object.GetName(), err)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return authorizationv1.ResourceAttributes{}, fmt.Errorf("resource of %s: %w", gvk.Kind, err)
	}
	needs := authorizationv1.ResourceAttributes{
		Verb: "patch", Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
		Namespace: w.Object.GetNamespace(), Name: w.Object.GetName(),
	}
	if w.verdict {
		needs.Subresource = "status"
	}
	if w.before == nil {
		needs.Verb, needs.Name = "create", ""
	}
	return needs, nil
}

func (w *Write) aboutItself(c client.Client) (*Write, error) {
	gvk, err := c.GroupVersionKindFor(w.Object)
	if err != nil {
		return nil, err //nolint:wrapcheck // the kinds are registered
	}
	w.About = About(gvk, w.Object)
	return w, nil
}

func prepareEdit(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	e := map[Verb]struct {
		word rollout.Reason
		edit func(client.Object, Author) error
	}{Pause: {ReasonPaused, pause}, Resume: {ReasonResumed, resume}, Retry: {ReasonRetried, retryRollout}}[r.Verb]
	obj, err := read(ctx, c, r.Ref)
	if err != nil {
		return nil, err
	}
	if r.Verb == Retry {
		if err := hasFailed(ctx, c, r.Ref, obj); err != nil {
			return nil, err
		}
	}
	w := &Write{Object: obj, Word: e.word, Said: fmt.Sprintf("%s %s", r.Ref, strings.ToLower(string(e.word))), before: copyOf(obj)}
	if err := e.edit(obj, who); err != nil {
		return nil, fmt.Errorf("%s %w", r.Ref, err)
	}
	if r.Verb == Pause && !isRolled(obj) {
		w.Said += ", but no ring rolls it unless a policy tracks it: it has no annotation " + vocabulary.ConfigTracked.Native
	}
	return w.aboutItself(c)
}

// isRolled is false of a workload that is neither tracked nor in a group: to pause it has no effect.
func isRolled(obj client.Object) bool {
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		annotations := obj.GetAnnotations()
		return vocabulary.ConfigTracked.Get(annotations) == "true" || vocabulary.Suspended.Get(annotations) != "" || vocabulary.GroupOf(obj.GetLabels(), annotations) != ""
	default:
		return true
	}
}

func read(ctx context.Context, c client.Client, ref describe.Ref) (client.Object, error) {
	obj, err := newObject(c.Scheme(), ref.Kind)
	if err != nil {
		return nil, err
	}
	if ref.Kind != describe.KindClusterPolicy {
		obj.SetNamespace(ref.Namespace)
	}
	obj.SetName(ref.Name)
	return obj, Get(ctx, c, obj)
}

func copyOf(obj client.Object) client.Object {
	c, _ := obj.DeepCopyObject().(client.Object) // it always is one
	return c
}

// Missing is the verb that the user of a client lacks for a write, empty if they lack none. The
// verb is that of the act, empty if there is none for it.
func Missing(ctx context.Context, c client.Client, needs authorizationv1.ResourceAttributes, verb string) (string, error) {
	a := asker{ctx: ctx, client: c, needs: needs}
	verbs := steering.Verbs(needs.Group, needs.Resource)
	isLimited := needs.Verb == "patch" && needs.Subresource == "" && len(verbs) > 0
	switch {
	case !a.may(needs.Verb):
		return needs.Verb, a.err
	case !isLimited || a.may("update") || slices.Contains(verbs, verb) && a.may(verb) || !slices.ContainsFunc(verbs, a.may):
		return "", a.err
	case slices.Contains(verbs, verb):
		return verb, a.err
	default:
		return "update", a.err
	}
}

// asker asks what the user may do with an object. After an error it asks nothing.
type asker struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one answer
	client client.Client
	needs  authorizationv1.ResourceAttributes
	err    error
}

func (a *asker) may(verb string) bool {
	if a.err != nil {
		return false
	}
	needs := a.needs
	needs.Verb = verb
	may, err := May(a.ctx, a.client, &needs)
	if err != nil {
		a.err = fmt.Errorf("ask whether you may do it: %w", err)
	}
	return may
}

type steerCommand struct {
	verb Verb
	// kinds are those that it changes.
	kinds       []string
	short, long string
	// examples are what follows the verb, and asks what to name, where it is not any object.
	examples []string
	asks     string
}

var steerCommands = []steerCommand{
	{
		verb: Pause, kinds: PausedKinds, short: "Pause a rollout until it is resumed",
		long: "Nothing more is updated, assigned or removed. What is updating already completes.\n" +
			"KIND is a workload, a RolloutGroup, an Instance or a Module; a ConfigMap or Secret: then\n" +
			"no workload is rolled for a change of it; or a ConfigPolicy or ClusterConfigPolicy: then\n" +
			"no workload is rolled for a change of the config that it is for.",
		examples: []string{`rolloutgroup/ingester -n mimir --reason "incident 42"`},
	},
	{
		verb: Resume, kinds: PausedKinds, short: "Resume a paused rollout",
		examples: []string{`module/shop -n clusters --reason "incident 42"`},
	},
	{
		verb: Retry, kinds: RetriedKinds, short: "Retry a rollout that has failed",
		long: "KIND is a RolloutGroup, whose progress deadline starts again, or a ConfigMap or Secret:\n" +
			"what has failed with it so far holds no workload any more, and workloads that were rolled\n" +
			"back from it are rolled again; or a Module or BootstrapModule: the revision that it has\n" +
			"given up is rolled out once more, once all clusters have returned from it. What has not\n" +
			"failed is not changed, and the exit code is 1.",
		examples: []string{`secret/db -n shop --reason "incident 42"`},
	},
	{
		verb: Approve, kinds: GatedKinds, short: "Approve a gate: the rollout that waits for it continues",
		long: gates, examples: gateExamples, asks: gateAsked,
	},
	{
		verb: Refuse, kinds: GatedKinds, short: "Refuse a gate: the rollout that waits for it stops",
		long: gates, examples: gateExamples, asks: gateAsked,
	},
}

const (
	gates = "KIND is a RolloutGate, or what waits for one: a RolloutGroup, an Instance, a ConfigPolicy or a Module.\n" +
		"A gate that is being measured is decided, too, and measured no more."
	gateAsked = "name a gate as gate/NAME, or what waits for one as KIND/NAME; kubectl get gates lists them"
)

var gateExamples = []string{`rolloutgroup/ingester -n mimir --reason "errors are fine"`, "gate/ingester-approve-0a1b2c3d4e -n mimir"}

// Commands returns the commands pause, resume, retry, approve and refuse.
func Commands(env command.Environment) []*cobra.Command {
	all := make([]*cobra.Command, 0, len(steerCommands))
	for i := range steerCommands {
		all = append(all, steerCommands[i].command(env))
	}
	return all
}

func (s *steerCommand) command(env command.Environment) *cobra.Command {
	p, lead := &Person{Env: env}, "  spillway "+string(s.verb)+" "
	cmd := &cobra.Command{
		Use: string(s.verb) + " KIND/NAME", Short: s.short, Long: strings.TrimSpace(s.short + ".\n" + s.long),
		Example: lead + strings.Join(s.examples, "\n"+lead),
		Args:    command.Exactly(1, cmp.Or(s.asks, "name one object as KIND/NAME")),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, p, args[0]) },
	}
	p.Cluster.AddNamespacedFlags(cmd.Flags())
	return p.AddFlags(cmd, ReasonUsage)
}

func (s *steerCommand) run(cmd *cobra.Command, p *Person, arg string) error {
	instead := ""
	if s.verb == Retry {
		instead = insteadOfRetry(arg)
	}
	ref, err := command.Wanted(string(s.verb), arg, s.kinds, instead)
	if err != nil {
		return err
	}
	if err := p.Connect(); err != nil {
		return err
	}
	p.Identify(cmd.Context())
	ref.Namespace = p.Namespace
	return p.Do(cmd.Context(), cmd.OutOrStdout(), Request{Verb: s.verb, Ref: ref})
}

// insteadOfRetry says what to name in the place of something that retry does not take, empty for one of
// its kinds.
func insteadOfRetry(arg string) string {
	if _, isPolicy := command.NamedAs(arg, describe.KindPolicy, describe.KindClusterPolicy); isPolicy {
		return "a release is of an object; name the ConfigMap or Secret, as spillway status shows it"
	}
	if instance, is := command.NamedAs(arg, describe.KindInstance); is {
		return "a plan is retried with spillway plan retry " + instance.Name
	}
	if ref, is := command.NamedAs(arg, workload.Deployment, workload.StatefulSet, workload.DaemonSet); is {
		return "name the ConfigMap or Secret with which it has failed, which spillway explain " + ref.String() + " names; or its RolloutGroup"
	}
	return ""
}

// Person is who changes something by a command: where, why, and what is printed of it.
type Person struct {
	Env            command.Environment
	Cluster        command.Cluster
	DryRun         command.DryRun
	Reason, Output string

	// Client and Namespace are set by [Person.Connect], and Who by [Person.Identify].
	Client    client.WithWatch
	Namespace string
	Who       Author
}

// AddFlags adds the flags of a command that changes something, but for those of the cluster. Usage is
// that of the reason.
func (p *Person) AddFlags(cmd *cobra.Command, usage string) *cobra.Command {
	command.OutputFlag(cmd, &p.Output, command.OutputName)
	p.DryRun.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&p.Reason, "reason", "", usage)
	return cmd
}

// ReasonUsage is that of the reason where status shows it, too.
const ReasonUsage = "the reason to record; status, explain and Events show it"

// Connect connects to the cluster, in the namespace that is meant.
func (p *Person) Connect() error {
	c, namespace, err := p.Cluster.Connect()
	if err != nil {
		return err
	}
	p.Client, p.Namespace = p.DryRun.Client(c), namespace
	return nil
}

// Identify asks the API server who the person is, for what is recorded.
func (p *Person) Identify(ctx context.Context) {
	p.Who = Author{By: Whoami(ctx, p.Client), Reason: p.Reason, At: metav1.NewTime(p.Env.Now().Truncate(time.Second))}
}

// Do does what the person wants, tells of it, and records it.
func (p *Person) Do(ctx context.Context, out io.Writer, r Request) error {
	w, err := Do(ctx, p.Client, r, p.Who)
	if err != nil {
		return err
	}
	if err := Show(out, p.Output, p.Client, w.Said+p.DryRun.Note(), w.Object); err != nil || p.DryRun.On() {
		return err
	}
	return w.Record(ctx, p.Client, p.Who, p.Env.Now())
}
