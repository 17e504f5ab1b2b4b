package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// back is the return of an Instance to what an earlier execution has applied: to its
// OperatorVersion and its parameters.
type back struct {
	operation

	to string
}

type earlier struct {
	*v1beta1.InstanceSpec

	// called is how messages name it, hash the content with which it was applied.
	called, hash string
}

func (b *back) run(ctx context.Context, name, reason string) error {
	i := b.instance(name)
	if err := b.get(ctx, i); err != nil {
		return err
	}
	if e := i.Status.Running(); e != nil {
		return fmt.Errorf("instance/%s: plan %s is running; roll back after it has ended, or abandon it first with: %s", i.Name, e.Plan, b.next("plan", "abandon", i.Name))
	}
	former, err := b.formerOf(ctx, i)
	if err != nil {
		return err
	}
	to, err := b.target(ctx, i, former)
	if err != nil {
		return err
	}
	next, err := b.installed(ctx, i, to)
	if err != nil {
		return err
	}
	shown, before := i.Generation, i.Spec
	chosen, err := b.propose(i, to, next, former)
	if err != nil {
		return err
	}
	b.show(i, &before, to, former, next, chosen)
	if err := b.checkPlan(ctx, i, next, chosen.Plan); err != nil {
		return err
	}
	if err := b.confirm(fmt.Sprintf("Roll back instance/%s?", i.Name)); err != nil {
		return err
	}
	return b.write(ctx, i, to, next, former, shown, reason)
}

// target is what to return to: what --to names, or else what was applied before that which
// the spec wants now.
func (b *back) target(ctx context.Context, i *v1beta1.Instance, former *choice.Version) (*earlier, error) {
	if b.to != "" {
		return b.byUID(i)
	}
	if last := i.Status.LastAppliedInstanceSpec; last != nil && !choice.SameTarget(i.Namespace, last, &i.Spec) {
		return &earlier{last, "what was last applied", i.Status.LastAppliedContentHash}, nil
	}
	for k := range i.Status.History {
		past := &i.Status.History[k]
		switch {
		case past.Result != v1beta1.ResultComplete || !mayApply(past):
			continue
		case past.Spec == nil:
			return nil, fmt.Errorf("instance/%s cannot be rolled back to %s, the one before: %s", i.Name, executionText(past), b.unknown(i))
		}
		to := appliedBy(past)
		if differs, err := b.differs(ctx, i, to, former); differs || err != nil {
			return to, err
		}
	}
	return nil, fmt.Errorf("instance/%s has no earlier execution that applied something else; %s", i.Name, b.choices(i))
}

// mayApply is true of an execution whose spec became the one last applied, as far as is known:
// earlier versions of the manager did not record it.
func mayApply(past *v1beta1.PastExecution) bool {
	return past.Advances || slices.Contains([]v1beta1.Cause{v1beta1.CauseCreate, v1beta1.CauseUpgrade, v1beta1.CauseParameters}, past.Cause)
}

// differs is true if a return changes something: a plan would run, or it is refused.
func (b *back) differs(ctx context.Context, i *v1beta1.Instance, to *earlier, former *choice.Version) (bool, error) {
	if choice.SameTarget(i.Namespace, to.InstanceSpec, &i.Spec) {
		return false, nil
	}
	next, err := b.versionAt(ctx, i.Namespace, to.InstanceSpec)
	if err != nil || next == nil {
		return true, err
	}
	chosen, err := b.propose(i.DeepCopy(), to, next, former)
	return err != nil || chosen.Plan != "", nil //nolint:nilerr // the same error is given once it was chosen
}

func (b *back) byUID(i *v1beta1.Instance) (*earlier, error) {
	var found []*v1beta1.PastExecution
	for k := range i.Status.History {
		if past := &i.Status.History[k]; strings.HasPrefix(string(past.UID), b.to) {
			found = append(found, past)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("--to: instance/%s has no execution %q; %s", i.Name, b.to, b.choices(i))
	case len(found) > 1:
		return nil, fmt.Errorf("--to: several executions of instance/%s begin with %q; %s", i.Name, b.to, b.choices(i))
	case found[0].Spec == nil:
		return nil, fmt.Errorf("--to: instance/%s cannot be rolled back to %s: %s", i.Name, executionText(found[0]), b.unknown(i))
	case choice.SameTarget(i.Namespace, found[0].Spec, &i.Spec):
		return nil, fmt.Errorf("instance/%s already has the OperatorVersion and the parameters of %s; %s", i.Name, executionText(found[0]), b.choices(i))
	default:
		return appliedBy(found[0]), nil
	}
}

func appliedBy(past *v1beta1.PastExecution) *earlier {
	return &earlier{past.Spec, executionText(past), past.ContentHash}
}

func executionText(past *v1beta1.PastExecution) string {
	return fmt.Sprintf("execution %s (plan %s of %s, %s)", past.UID, past.Plan, past.StartedAt.UTC().Format(time.DateTime), strings.ToLower(string(past.Result)))
}

func (b *back) unknown(i *v1beta1.Instance) string {
	return "its parameters are not kept, because it applied no change, an earlier version of the manager ran it, or they are too long; " + b.choices(i) +
		", or set them with: " + b.next("package", "update", "instance/"+i.Name, "-p", "NAME=VALUE")
}

func (b *back) choices(i *v1beta1.Instance) string {
	uids := Returns(i)
	if len(uids) == 0 {
		return "there is no other one to choose"
	}
	return "choose from " + strings.Join(uids, ", ") + ", which " + b.next("history", "instance/"+i.Name) + " describes"
}

// Returns are the UIDs of the executions to which an Instance can be returned, the newest
// first.
func Returns(i *v1beta1.Instance) []string {
	var uids []string
	for k := range i.Status.History {
		if past := &i.Status.History[k]; past.Spec != nil && !choice.SameTarget(i.Namespace, past.Spec, &i.Spec) {
			uids = append(uids, string(past.UID))
		}
	}
	return uids
}

func (b *back) installed(ctx context.Context, i *v1beta1.Instance, to *earlier) (*choice.Version, error) {
	version, err := b.versionAt(ctx, i.Namespace, to.InstanceSpec)
	if err != nil {
		return nil, err
	}
	key := choice.VersionKey(i.Namespace, to.InstanceSpec)
	if version == nil {
		return nil, fmt.Errorf("instance/%s cannot be rolled back to %s: operatorversion/%s not found in namespace %s; install it again with: spillway package install PACKAGE %s --skip-instance -n %s",
			i.Name, to.called, key.Name, key.Namespace, i.Name, strings.Join(append([]string{key.Namespace}, b.cluster.Words()...), " "))
	}
	if to.hash != "" && to.hash != version.Hash {
		_, _ = fmt.Fprintf(b.env.Err, "note: operatorversion/%s was changed since then; its present content is used\n", key.Name)
	}
	return version, nil
}

// propose changes an Instance to what it is to return to, and says which plan would run.
func (b *back) propose(i *v1beta1.Instance, to *earlier, next, former *choice.Version) (choice.Choice, error) {
	i.Spec.OperatorVersion, i.Spec.Parameters, i.Spec.ParametersFrom = to.OperatorVersion, choice.WithoutTokens(to.Parameters), to.ParametersFrom
	chosen, err := b.choose(i, next, former)
	if err != nil {
		return chosen, fmt.Errorf("cannot roll back to %s: %w", to.called, err)
	}
	return chosen, nil
}

// show says what the return would do. It names parameters without their values, which may be
// secrets.
func (b *back) show(i *v1beta1.Instance, before *v1beta1.InstanceSpec, to *earlier, former, next *choice.Version, chosen choice.Choice) {
	if b.output != "" {
		return
	}
	would := "no plan would run"
	if chosen.Plan != "" {
		would = fmt.Sprintf("plan %s would run", chosen.Plan)
	}
	_, _ = fmt.Fprintf(b.out, "instance/%s: back to %s; %s\n", i.Name, to.called, would)
	isUpgrade := choice.VersionKey(i.Namespace, before) != choice.VersionKey(i.Namespace, to.InstanceSpec)
	if isUpgrade {
		_, _ = fmt.Fprintf(b.out, "OperatorVersion %s to %s\n", before.OperatorVersion.Name, to.OperatorVersion.Name)
	}
	showParameters(b.out, before.Parameters, to.Parameters)
	if isUpgrade && former != nil && former.Name == before.OperatorVersion.Name {
		for _, line := range parameterChanges(former.Spec, next.Spec) {
			_, _ = fmt.Fprintln(b.out, line)
		}
	}
}

func showParameters(w io.Writer, before, after map[string]string) {
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, isSet := before[name]
		is, remains := after[name]
		switch {
		case !remains:
			_, _ = fmt.Fprintf(w, "parameter %s is no longer set\n", name)
		case !isSet:
			_, _ = fmt.Fprintf(w, "parameter %s is set\n", name)
		case was != is:
			_, _ = fmt.Fprintf(w, "parameter %s changes\n", name)
		}
	}
}

// write makes the change that was shown, if the Instance still wants what it wanted then.
func (b *back) write(ctx context.Context, i *v1beta1.Instance, to *earlier, next, former *choice.Version, shown int64, reason string) error {
	r := b.results()
	chosen, err := b.editShown(ctx, i, shown, func() (choice.Choice, error) { return b.propose(i, to, next, former) })
	if err != nil {
		return err
	}
	if err := r.add(i, "rolled back"+planned(chosen)); err != nil {
		return err
	}
	return errors.Join(b.record(ctx, i, reason), b.finish(ctx, r, i, next, chosen.Plan))
}

func (b *back) record(ctx context.Context, i *v1beta1.Instance, reason string) error {
	if b.dryRun.On() {
		return nil
	}
	who := act.Author{By: act.Whoami(ctx, b.client), Reason: reason}
	return act.RecordEvent(ctx, b.client, act.About(v1beta1.GroupVersion.WithKind("Instance"), i), act.ReasonRolledBackTo, who, b.env.Now())
}
