package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newUpdate(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "update instance/NAME", Short: "Change parameters of an Instance",
		Long: "Change parameters of an Instance. Those that are not named stay as they are. The plan that\n" +
			"they trigger then runs; which one that is, is printed. Immutable fields of objects that would\n" +
			"change are found beforehand.",
		Example: "  spillway package update instance/zk -n shop -p NODE_COUNT=5 --wait\n" +
			"  spillway package update instance/zk -n shop --unset MEMORY --dry-run=server",
		Args: command.Exactly(1, "name the Instance, as in: spillway package update instance/zk -p NAME=VALUE"),
		RunE: o.connected(o.update),
	}
	o.addFlags(cmd)
	o.settings.addFlags(cmd)
	o.addUnset(cmd)
	o.addWait(cmd, "the plan has ended and the Instance is ready, and show its progress")
	o.addDryRun(cmd)
	return cmd
}

func (o *operation) update(ctx context.Context, args []string) error {
	i := o.instance(args[0])
	if err := o.get(ctx, i); err != nil {
		return err
	}
	version, err := o.versionOf(ctx, i)
	if err != nil {
		return err
	}
	former, err := o.formerOf(ctx, i)
	if err != nil {
		return err
	}
	var chosen choice.Choice
	propose := func() (err error) {
		if err := o.set(&i.Spec); err != nil {
			return err
		}
		chosen, err = o.choose(i, version, former)
		return err
	}
	if err := propose(); err != nil {
		return err
	}
	if err := o.checkPlan(ctx, i, version, chosen.Plan); err != nil {
		return err
	}
	changedIt, err := o.edit(ctx, i, propose)
	if err != nil {
		return err
	}
	r, did := o.results(), unchanged
	if changedIt {
		did = changed + planned(chosen)
	}
	if err := r.add(i, did); err != nil {
		return err
	}
	return o.finish(ctx, r, i, version, chosen.Plan)
}

func planned(c choice.Choice) string {
	if c.Plan == "" {
		return "; no plan runs"
	}
	if c.Changed == "" {
		return fmt.Sprintf("; plan %s runs", c.Plan)
	}
	return fmt.Sprintf("; plan %s runs (%s)", c.Plan, c.Changed)
}

// choose is the plan that the Instance would run next, as the controller would decide.
func (o *operation) choose(i *v1beta1.Instance, version, former *choice.Version) (choice.Choice, error) {
	status := i.Status.DeepCopy()
	if former != nil {
		choice.Adopt(status, i, former)
	}
	chosen, problems := choice.Choose(choice.ReplacementOf(i, status, version, former))
	if len(problems) > 0 {
		return chosen, fmt.Errorf("instance/%s: %s", i.Name, choice.Sentences(problems))
	}
	return chosen, nil
}

// checkPlan refuses a change whose plan would fail: one that undoes what it does, or that
// changes what cannot be changed.
func (o *operation) checkPlan(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if err := checkTasks(i, version.Spec, plan); err != nil {
		return err
	}
	return o.checkImmutable(ctx, i, version, plan)
}

// checkTasks refuses a plan that undoes what it does.
func checkTasks(i *v1beta1.Instance, version *v1beta1.OperatorVersionSpec, plan string) error {
	values, _ := choice.Values(version, choice.WithTokens(&i.Spec), i.Status.ImmutableParameters) // judged before
	run := task.Run{
		Snapshot: &task.Snapshot{Instance: i}, Version: &choice.Version{Spec: version},
		Execution: &v1beta1.Execution{Plan: plan, Spec: i.Spec}, Values: values,
	}
	for _, phase := range version.Plans[plan].Phases {
		for _, step := range phase.Steps {
			if c := run.Contradiction(phase.Name, step.Name); c != nil {
				return fmt.Errorf("plan %s would fail: %s; give each of them a step of its own", plan, c)
			}
		}
	}
	return nil
}

// checkImmutable refuses a change that the API server would refuse, before the plan that
// would fail at it. What the caller must not try is left to the manager.
func (o *operation) checkImmutable(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if plan == "" || o.dryRun.IsClient() {
		return nil
	}
	all, err := o.trial().differences(ctx, i, version, plan)
	if err != nil {
		return err
	}
	o.tried = true
	var refusals []error
	for k := range all {
		switch d := &all[k]; {
		case d.Refused != "":
			refusals = append(refusals, fmt.Errorf("plan %s would fail: %s: %s", plan, d.Ref, d.Refused))
		case d.Unknown != "":
			_, _ = fmt.Fprintf(o.env.Err, "note: %s is not checked: %s\n", d.Ref, d.Unknown)
		case d.Unchecked != "":
			_, _ = fmt.Fprintf(o.env.Err, "note: %s: it is not known whether objects stay valid: %s\n", d.Ref, d.Unchecked)
		case d.Recreated:
			_, _ = fmt.Fprintf(o.env.Err, "note: %s would be deleted and created again, because an immutable field changes\n", d.Ref)
		}
	}
	return errors.Join(refusals...)
}

func (o *operation) get(ctx context.Context, i *v1beta1.Instance) error {
	if err := act.Get(ctx, o.client, i); err != nil {
		return err
	}
	if i.DeletionTimestamp != nil {
		return fmt.Errorf("instance/%s is being deleted; it can no longer be changed", i.Name)
	}
	return nil
}

func (o *operation) versionOf(ctx context.Context, i *v1beta1.Instance) (*choice.Version, error) {
	version, err := o.versionAt(ctx, i.Namespace, &i.Spec)
	if err == nil && version == nil {
		key := choice.VersionKey(i.Namespace, &i.Spec)
		return nil, fmt.Errorf("instance/%s: operatorversion/%s not found in namespace %s; upgrade to one that exists with: %s",
			i.Name, key.Name, key.Namespace, o.next("package", "upgrade", "instance/"+i.Name, "PACKAGE"))
	}
	return version, err
}

// formerOf reads the OperatorVersion that was last applied, nil if it no longer exists.
func (o *operation) formerOf(ctx context.Context, i *v1beta1.Instance) (*choice.Version, error) {
	if applied := i.Status.LastAppliedInstanceSpec; applied != nil {
		return o.versionAt(ctx, i.Namespace, applied)
	}
	return o.versionAt(ctx, i.Namespace, &i.Spec)
}

// versionAt reads the OperatorVersion of a spec, nil if it does not exist.
func (o *operation) versionAt(ctx context.Context, namespace string, spec *v1beta1.InstanceSpec) (*choice.Version, error) {
	key, version := choice.VersionKey(namespace, spec), &v1beta1.OperatorVersion{}
	err := o.client.Get(ctx, key, version)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is a common answer
	case err != nil:
		return nil, fmt.Errorf("get operatorversion/%s: %w", key.Name, err)
	default:
		return choice.NewVersion(version), nil
	}
}

// edit changes an Instance if it is still as it was read; false if nothing is to change.
func (o *operation) edit(ctx context.Context, i *v1beta1.Instance, edit func() error) (bool, error) {
	gvk, isChanged := v1beta1.GroupVersion.WithKind("Instance"), false
	defer i.SetGroupVersionKind(gvk) // decoding removes it
	err := act.OnConflict("instance/"+i.Name, func() error {
		if err := o.get(ctx, i); err != nil {
			return err
		}
		before := i.DeepCopy()
		if err := edit(); err != nil {
			return err
		}
		isChanged = !choice.SameTarget(i.Namespace, &before.Spec, &i.Spec)
		if !isChanged || o.dryRun.IsClient() {
			return nil
		}
		options := []client.PatchOption{client.FieldOwner(act.FieldOwner)}
		if o.dryRun.On() {
			options = append(options, client.DryRunAll)
		}
		err := o.client.Patch(ctx, i, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), options...)
		if isDenied(i, err) {
			return fmt.Errorf("instance/%s: plan %s is running, so nothing can be changed yet; to see why it has not ended: %s; to give it up: %s",
				i.Name, i.Status.Execution.Plan, o.next("explain", "instance/"+i.Name), o.next("plan", "abandon", i.Name))
		}
		if err != nil {
			return fmt.Errorf("change instance/%s: %w", i.Name, err)
		}
		return nil
	})
	return isChanged, err
}

// editShown makes the change that was shown, if the Instance still wants what it wanted then.
func (o *operation) editShown(ctx context.Context, i *v1beta1.Instance, shown int64, propose func() (choice.Choice, error)) (chosen choice.Choice, err error) {
	_, err = o.edit(ctx, i, func() (err error) {
		if i.Generation != shown {
			return fmt.Errorf("instance/%s was changed by another client meanwhile; nothing was changed, try again", i.Name)
		}
		chosen, err = propose()
		return err
	})
	return chosen, err
}

// isDenied is true if the guard in the API server refuses a change because a plan runs.
func isDenied(i *v1beta1.Instance, err error) bool {
	x := i.Status.Execution
	return x != nil && x.FinishedAt == nil && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), " is running: spec.")
}

type upgrade struct {
	operation

	allowDowngrade bool
}

func newUpgrade(env command.Environment) *cobra.Command {
	u := &upgrade{operation: operation{env: env}}
	cmd := &cobra.Command{
		Use: "upgrade instance/NAME PACKAGE", Short: "Upgrade an Instance to another version of its package",
		Long: "Show the plan that would run, and the parameters that are new, removed, newly required or\n" +
			"newly immutable, and ask; then create the OperatorVersion and change the Instance to it.\n" +
			"Immutable fields of objects that would change are found beforehand. Values of parameters\n" +
			"that the new version does not have are removed.",
		Example: "  spillway package upgrade instance/zk zookeeper-0.4.0.tgz -n shop --wait\n" +
			"  spillway package upgrade instance/zk ./zookeeper -n shop -p SIZE=3 --yes",
		Args: command.Exactly(2, "name the Instance and a package, as in: spillway package upgrade instance/zk ./zookeeper"),
		RunE: u.connected(u.run),
	}
	u.addFlags(cmd)
	u.from.AddFlags(cmd.Flags())
	u.settings.addFlags(cmd)
	u.addUnset(cmd)
	u.addWait(cmd, "the plan has ended and the Instance is ready, and show its progress")
	u.addDryRun(cmd)
	u.addYes(cmd)
	cmd.Flags().BoolVar(&u.allowDowngrade, "allow-downgrade", false, "permit a lower version than the installed one")
	return cmd
}

func (u *upgrade) run(ctx context.Context, args []string) error {
	p, needed, err := u.load(ctx, args[1])
	if err != nil {
		return err
	}
	version, err := p.VersionObject()
	if err != nil {
		return err
	}
	version.Namespace = u.namespace
	i := u.instance(args[0])
	if err := u.get(ctx, i); err != nil {
		return err
	}
	if err := u.checkSteps(ctx, i, version); err != nil {
		return err
	}
	former, err := u.formerOf(ctx, i)
	if err != nil {
		return err
	}
	shown := i.Generation
	next := choice.NewVersion(version)
	chosen, err := u.propose(i, former, next)
	if err != nil {
		return err
	}
	if u.output == "" {
		showUpgrade(u.out, i, former, next, chosen)
	}
	if err := u.checkPlan(ctx, i, next, chosen.Plan); err != nil {
		return err
	}
	if err := u.confirm(fmt.Sprintf("Upgrade instance/%s?", i.Name)); err != nil {
		return err
	}
	return u.write(ctx, p, needed, version, i, former, shown)
}

// checkSteps refuses what is no upgrade, and an OperatorVersion with other content.
func (u *upgrade) checkSteps(ctx context.Context, i *v1beta1.Instance, version *v1beta1.OperatorVersion) error {
	named := "instance/" + i.Name
	installed, err := u.versionAt(ctx, i.Namespace, &i.Spec)
	switch {
	case err != nil:
		return err
	case installed == nil:
	case installed.Spec.Operator.Name != version.Spec.Operator.Name:
		return fmt.Errorf("%s is of package %s, not %s; name a package of %s", named, installed.Spec.Operator.Name, version.Spec.Operator.Name, installed.Spec.Operator.Name)
	case installed.Name == version.Name && installed.Namespace == version.Namespace:
		return fmt.Errorf("%s is at OperatorVersion %s already; change its parameters with: %s", named, version.Name, u.next("package", "update", named, "-p", "NAME=VALUE"))
	case !u.allowDowngrade:
		if why := notGreater(installed.Spec, &version.Spec); why != "" {
			return fmt.Errorf("%s: %s; name a later version, or add --allow-downgrade", named, why)
		}
	}
	return u.checkVersion(ctx, version)
}

// propose changes the copy that the user is shown, and says which plan would run.
func (u *upgrade) propose(i *v1beta1.Instance, former, next *choice.Version) (choice.Choice, error) {
	if err := u.set(&i.Spec); err != nil {
		return choice.Choice{}, err
	}
	given, err := u.given()
	if err != nil {
		return choice.Choice{}, err
	}
	maps.DeleteFunc(i.Spec.Parameters, func(name, _ string) bool {
		_, isGiven := given[name]
		return !isGiven && !hasParameter(next.Spec, name)
	})
	i.Spec.ParametersFrom = slices.DeleteFunc(i.Spec.ParametersFrom, func(p v1beta1.ParameterSource) bool { return !hasParameter(next.Spec, p.Name) })
	if key := choice.VersionKey(i.Namespace, &i.Spec); key.Name != next.Name || key.Namespace != next.Namespace { // it may be shared
		i.Spec.OperatorVersion = v1beta1.ObjectReference{Name: next.Name}
	}
	return u.choose(i, next, former)
}

// write makes the change that was shown, if the Instance still wants what it wanted then.
func (u *upgrade) write(ctx context.Context, p *packages.Package, needed []*packages.Package, version *v1beta1.OperatorVersion, i *v1beta1.Instance, former *choice.Version, shown int64) error {
	r := u.results()
	next := choice.NewVersion(version.DeepCopy())
	if err := u.ensureNeeded(ctx, r, needed); err != nil {
		return err
	}
	if err := u.ensurePackage(ctx, r, p, u.operatorOf(p), version); err != nil {
		return err
	}
	chosen, err := u.editShown(ctx, i, shown, func() (choice.Choice, error) { return u.propose(i, former, next) })
	if err != nil {
		return err
	}
	if err := r.add(i, changed+planned(chosen)); err != nil {
		return err
	}
	return u.finish(ctx, r, i, next, chosen.Plan)
}

// notGreater says why a version is not greater than the one before, empty if it is. The
// version of the package counts, and of the same the version of the application.
func notGreater(before, after *v1beta1.OperatorVersionSpec) string {
	order, isKnown := compared(before.Version, after.Version)
	if order == 0 {
		order, isKnown = compared(before.AppVersion, after.AppVersion)
	}
	from, to := versionText(before), versionText(after)
	switch {
	case !isKnown:
		return fmt.Sprintf("version %s cannot be compared with %s, which is installed, because one of them is no semantic version", to, from)
	case order >= 0:
		return fmt.Sprintf("version %s is not greater than %s, which is installed", to, from)
	default:
		return ""
	}
}

func compared(a, b string) (order int, isKnown bool) {
	if a == b {
		return 0, true
	}
	one, err := semver.NewVersion(a)
	other, failed := semver.NewVersion(b)
	if errors.Join(err, failed) != nil {
		return cmp.Compare(a, b), false
	}
	return one.Compare(other), true
}

func versionText(v *v1beta1.OperatorVersionSpec) string {
	if v.AppVersion == "" {
		return v.Version
	}
	return v.Version + " of " + v.AppVersion
}

func hasParameter(v *v1beta1.OperatorVersionSpec, name string) bool { return parameter(v, name) != nil }

func parameter(v *v1beta1.OperatorVersionSpec, name string) *v1beta1.Parameter {
	if i := slices.IndexFunc(v.Parameters, func(p v1beta1.Parameter) bool { return p.Name == name }); i >= 0 {
		return &v.Parameters[i]
	}
	return nil
}

func showUpgrade(w io.Writer, i *v1beta1.Instance, former, next *choice.Version, chosen choice.Choice) {
	_, _ = fmt.Fprintf(w, "instance/%s: OperatorVersion %s; plan %s would run\n", i.Name, chosen.Changed, chosen.Plan)
	if former == nil {
		return
	}
	for _, line := range parameterChanges(former.Spec, next.Spec) {
		_, _ = fmt.Fprintln(w, line)
	}
}

func parameterChanges(before, after *v1beta1.OperatorVersionSpec) []string {
	var lines []string
	for i := range after.Parameters {
		p := &after.Parameters[i]
		old := parameter(before, p.Name)
		switch {
		case old == nil:
			lines = append(lines, "parameter "+p.Name+" is new"+described(p))
			continue
		case needsValue(p) && !needsValue(old):
			lines = append(lines, "parameter "+p.Name+" is newly required")
		}
		if p.IsImmutable() && !old.IsImmutable() {
			lines = append(lines, "parameter "+p.Name+" is newly immutable")
		}
		if defaultOf(p) != defaultOf(old) {
			lines = append(lines, "parameter "+p.Name+" has another default: "+defaultOf(old)+" to "+defaultOf(p))
		}
	}
	for i := range before.Parameters {
		if name := before.Parameters[i].Name; !hasParameter(after, name) {
			lines = append(lines, "parameter "+name+" is removed")
		}
	}
	return lines
}

func described(p *v1beta1.Parameter) string {
	text := ", default " + defaultOf(p)
	if needsValue(p) {
		text = ", and required"
	}
	if p.IsImmutable() {
		text += ", immutable"
	}
	return text
}

func needsValue(p *v1beta1.Parameter) bool { return p.IsRequired() && p.Default == nil }

func defaultOf(p *v1beta1.Parameter) string {
	if p.Default == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *p.Default)
}

func newUninstall(env command.Environment) *cobra.Command {
	o := &operation{env: env}
	cmd := &cobra.Command{
		Use: "uninstall instance/NAME", Short: "Delete an Instance, after its cleanup plan",
		Long: "Delete an Instance. If it has a plan cleanup, that runs first. Then all objects are deleted\n" +
			"that it has applied in its namespace. Volumes of StatefulSets stay, and so do the Operator\n" +
			"and the OperatorVersion, which other Instances may use.",
		Example: "  spillway package uninstall instance/zk -n shop --dry-run=client\n" +
			"  spillway package uninstall instance/zk -n shop --yes --wait",
		Args: command.Exactly(1, "name the Instance, as in: spillway package uninstall instance/zk"),
		RunE: o.connected(o.uninstall),
	}
	o.addFlags(cmd)
	o.addWait(cmd, "the Instance and all that it has applied are deleted")
	o.addYes(cmd)
	command.NameFlag(cmd, &o.output)
	o.dryRun.AddFlagWith(cmd.Flags(), `"client" or "server": delete nothing, and show what the plan cleanup would do and what would be deleted; with "server" the API server also checks it`)
	return cmd
}

func (o *operation) uninstall(ctx context.Context, args []string) error {
	i := o.instance(args[0])
	if err := act.Get(ctx, o.client, i); err != nil {
		return err
	}
	if err := o.confirm(fmt.Sprintf("Delete instance/%s in namespace %s, and its %d objects?", i.Name, i.Namespace, len(i.Status.Inventory))); err != nil {
		return err
	}
	if o.dryRun.On() {
		return o.previewUninstall(ctx, i)
	}
	uid := i.UID
	if err := o.delete(ctx, i); err != nil {
		return err
	}
	switch {
	case o.output != "":
		_, _ = fmt.Fprintf(o.out, "instance.%s/%s\n", v1beta1.GroupVersion.Group, i.Name)
	case o.env.KUDO:
		_, _ = fmt.Fprintf(o.out, "instance.%s/%s deleted\n", v1beta1.GroupVersion, i.Name)
	default:
		_, _ = fmt.Fprintf(o.out, "instance/%s deleted\n", i.Name)
	}
	if !o.wait {
		return nil
	}
	return o.planner(i).deleted(ctx, uid)
}

// delete deletes an Instance if it is the one that was read.
func (o *operation) delete(ctx context.Context, i *v1beta1.Instance) error {
	propagation := metav1.DeletePropagationBackground
	if o.wait {
		propagation = metav1.DeletePropagationForeground
	}
	uid := i.UID
	options := []client.DeleteOption{client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation)}
	if o.dryRun.On() {
		options = append(options, client.DryRunAll)
	}
	err := o.client.Delete(ctx, i.DeepCopy(), options...)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("instance/%s was deleted by another client", i.Name)
	case err != nil:
		return fmt.Errorf("delete instance/%s: %w", i.Name, err)
	default:
		return nil
	}
}

// previewUninstall shows what the plan cleanup would do, and what would be deleted with
// the Instance.
func (o *operation) previewUninstall(ctx context.Context, i *v1beta1.Instance) error {
	if !o.dryRun.IsClient() {
		if err := o.delete(ctx, i); err != nil {
			return err
		}
	}
	i.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance")) // decoding removes it
	r := o.results()
	if err := o.previewCleanup(ctx, r, i); err != nil {
		return err
	}
	if err := r.add(i, "deleted"); err != nil {
		return err
	}
	for _, entry := range i.Status.Inventory {
		if err := o.previewOwned(ctx, r, i, entry); err != nil {
			return err
		}
	}
	return r.end()
}

func (o *operation) previewCleanup(ctx context.Context, r *results, i *v1beta1.Instance) error {
	version, err := o.versionAt(ctx, i.Namespace, &i.Spec)
	if err != nil || version == nil || !slices.Contains(i.Finalizers, vocabulary.CleanupFinalizer) {
		return err
	}
	if _, ok := version.Spec.Plans[v1beta1.CleanupPlan]; !ok {
		return nil
	}
	cleaned := i.DeepCopy()
	cleaned.Spec.Parameters = choice.CleanupParameters(i, &i.Status, version)
	return o.showPlan(ctx, r, cleaned, version, v1beta1.CleanupPlan)
}

// previewOwned shows what becomes of an object that the Instance has applied. Kubernetes
// deletes those that the Instance owns, unless the plan has before.
func (o *operation) previewOwned(ctx context.Context, r *results, i *v1beta1.Instance, entry v1beta1.InventoryEntry) error {
	live := kube.Metadata(schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind})
	name := strings.ToLower(entry.Kind) + "/" + entry.Name
	err := o.client.Get(ctx, client.ObjectKey{Namespace: entry.Namespace, Name: entry.Name}, live)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		_, _ = fmt.Fprintf(o.env.Err, "note: %s is not checked: you may not read it\n", name)
		return nil
	case err != nil:
		return fmt.Errorf("get %s: %w", name, err)
	case !slices.ContainsFunc(live.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == i.UID }):
		_, _ = fmt.Fprintf(o.env.Err, "note: %s stays, because instance/%s does not own it\n", name, i.Name)
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetName(live.Name)
	if !r.deleted[fullName(u)] {
		r.addRendered(u, "deleted with instance/"+i.Name, true)
	}
	return nil
}

func (o *operation) addYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}
