package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

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
