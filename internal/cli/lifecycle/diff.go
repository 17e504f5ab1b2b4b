package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/shell"
)

func newDiff(env command.Environment) *cobra.Command {
	u := &upgrade{operation: operation{env: env}, allowDowngrade: true}
	cmd := &cobra.Command{
		Use: "diff instance/NAME [PACKAGE]", Short: "Show what other parameters or another version would change",
		Long: "Show the plan that other parameters or another version of the package would run, and how\n" +
			"objects would change, by server-side dry run. Immutable fields that would change are named.\n" +
			"Nothing is written. Values of Secrets are not shown. Where no plan would run, objects are\n" +
			"shown that other clients have changed or deleted since they were applied. The exit code is\n" +
			"0, also if there are differences, or 1 with an error if the plan would fail.",
		Example: "  spillway package diff instance/zk -n shop -p NODE_COUNT=5\n" +
			"  spillway package diff instance/zk zookeeper-0.4.0.tgz -n shop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the Instance, as in: spillway package diff instance/zk -p NAME=VALUE")
			}
			return command.AtMost(2, "name the Instance, and a package")(cmd, args)
		},
		RunE: u.connected(u.diff),
	}
	u.addFlags(cmd)
	u.from.AddFlags(cmd.Flags())
	u.settings.addFlags(cmd)
	u.addUnset(cmd)
	return cmd
}

func (u *upgrade) diff(ctx context.Context, args []string) error {
	i := u.instance(args[0])
	if err := u.get(ctx, i); err != nil {
		return err
	}
	former, err := u.formerOf(ctx, i)
	if err != nil {
		return err
	}
	next, err := u.wantedVersion(ctx, i, args[1:])
	if err != nil {
		return err
	}
	chosen, err := u.propose(i, former, next)
	if err != nil {
		return err
	}
	if chosen.Plan == "" {
		_, _ = fmt.Fprintf(u.out, "instance/%s: no plan would run\n", i.Name)
		return u.drift(ctx, i, next)
	}
	_, _ = fmt.Fprintf(u.out, "instance/%s: plan %s would run (%s)\n", i.Name, chosen.Plan, chosen.Changed)
	if former != nil {
		for _, line := range parameterChanges(former.Spec, next.Spec) {
			_, _ = fmt.Fprintln(u.out, line)
		}
	}
	all, err := u.trial().differences(ctx, i, next, chosen.Plan)
	if err != nil {
		return err
	}
	refused := 0
	for k := range all {
		if all[k].Refused != "" {
			refused++
		}
		all[k].write(u.out)
	}
	if err := checkTasks(i, next.Spec, chosen.Plan); err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("plan %s would fail: the API server would not accept %d of its objects", chosen.Plan, refused)
	}
	return nil
}

// drift shows which objects differ from what was applied, and how the plan deploy would change them.
func (u *upgrade) drift(ctx context.Context, i *v1beta1.Instance, version *choice.Version) error {
	d := i.Status.Drift
	if d == nil {
		return nil
	}
	_, _ = fmt.Fprintf(u.out, "instance/%s: %s; spillway plan trigger %s would change:\n",
		i.Name, task.DriftSentence(d), shell.Join(i.Name, v1beta1.DeployPlan, "-n", i.Namespace))
	all, err := u.trial().differences(ctx, i, version, v1beta1.DeployPlan)
	for k := range all {
		if slices.ContainsFunc(d.Objects, func(o v1beta1.DriftedObject) bool {
			return all[k].Ref.Same(object.EntryRef(v1beta1.InventoryEntry{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}))
		}) {
			all[k].write(u.out)
		}
	}
	return err
}

// wantedVersion is the OperatorVersion of the package that is named, or the one that the
// Instance has.
func (u *upgrade) wantedVersion(ctx context.Context, i *v1beta1.Instance, args []string) (*choice.Version, error) {
	if len(args) == 0 {
		return u.versionOf(ctx, i)
	}
	p, _, err := u.load(ctx, args[0])
	if err != nil {
		return nil, err
	}
	version, err := p.VersionObject()
	if err != nil {
		return nil, err
	}
	version.Namespace = u.namespace
	installed, err := u.versionAt(ctx, i.Namespace, &i.Spec)
	if err != nil {
		return nil, err
	}
	if installed != nil && installed.Name == version.Name && !packages.SameContent(installed.Spec, &version.Spec) {
		_, _ = fmt.Fprintf(u.env.Err, "note: operatorversion/%s exists with other content; upgrade needs a new operatorVersion in operator.yaml\n", version.Name)
	}
	if installed == nil || installed.Name != version.Name {
		return choice.NewVersion(version), u.checkSteps(ctx, i, version)
	}
	return choice.NewVersion(version), nil
}
