package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// upgrade is the command upgrade.
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

// showUpgrade says what an upgrade does: the plan, and how the parameters differ.
func showUpgrade(w io.Writer, i *v1beta1.Instance, former, next *choice.Version, chosen choice.Choice) {
	_, _ = fmt.Fprintf(w, "instance/%s: OperatorVersion %s; plan %s would run\n", i.Name, chosen.Changed, chosen.Plan)
	if former == nil {
		return
	}
	for _, line := range parameterChanges(former.Spec, next.Spec) {
		_, _ = fmt.Fprintln(w, line)
	}
}

// parameterChanges says how the parameters of two versions differ, one in each line.
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

// described is what a user must know of a parameter that is new.
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

// needsValue is true of a parameter that an Instance must set.
func needsValue(p *v1beta1.Parameter) bool { return p.IsRequired() && p.Default == nil }

func defaultOf(p *v1beta1.Parameter) string {
	if p.Default == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *p.Default)
}
