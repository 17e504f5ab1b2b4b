package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/task"
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

// planned says which plan follows a change.
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

// get reads an Instance that can be changed.
func (o *operation) get(ctx context.Context, i *v1beta1.Instance) error {
	if err := act.Get(ctx, o.client, i); err != nil {
		return err
	}
	if i.DeletionTimestamp != nil {
		return fmt.Errorf("instance/%s is being deleted; it can no longer be changed", i.Name)
	}
	return nil
}

// versionOf reads the OperatorVersion of an Instance.
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
