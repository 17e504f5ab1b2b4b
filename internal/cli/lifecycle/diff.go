package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func newDiff(env command.Environment) *cobra.Command {
	u := &upgrade{operation: operation{env: env}, allowDowngrade: true}
	cmd := &cobra.Command{
		Use: "diff instance/NAME [PACKAGE]", Short: "Show what other parameters or another version would change",
		Long: "Show the plan that other parameters or another version of the package would run, and how\n" +
			"objects would change, by server-side dry run. Immutable fields that would change are named.\n" +
			"Nothing is written. Values of Secrets are not shown. The exit code is 0, also if there are\n" +
			"differences, or 1 with an error if the plan would fail.",
		Example: "  spillway package diff instance/zk -n shop -p NODE_COUNT=5\n" +
			"  spillway package diff instance/zk zookeeper-0.4.0.tgz -n shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the Instance, as in: spillway package diff instance/zk -p NAME=VALUE")
			}
			if err := command.AtMost(2, "name the Instance, and a package")(cmd.CommandPath(), args); err != nil {
				return err
			}
			if err := u.connect(cmd); err != nil {
				return err
			}
			return u.diff(cmd.Context(), args)
		},
	}
	u.addFlags(cmd)
	u.from.AddFlags(cmd.Flags())
	u.settings.addFlags(cmd)
	u.addUnset(cmd)
	return cmd
}

func (u *upgrade) diff(ctx context.Context, args []string) error {
	i := &v1beta1.Instance{}
	i.Name, i.Namespace = u.named(args[0]).Name, u.namespace
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
		return nil
	}
	_, _ = fmt.Fprintf(u.out, "instance/%s: plan %s would run (%s)\n", i.Name, chosen.Plan, chosen.Changed)
	if former != nil {
		for _, line := range parameterChanges(former.Spec, next.Spec) {
			_, _ = fmt.Fprintln(u.out, line)
		}
	}
	all, err := u.differences(ctx, i, next, chosen.Plan)
	if err != nil {
		return err
	}
	refused := 0
	for k := range all {
		if all[k].refused != "" {
			refused++
		}
		all[k].write(u.out)
	}
	if refused > 0 {
		return fmt.Errorf("plan %s would fail: the API server would not accept %d of its objects", chosen.Plan, refused)
	}
	return nil
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

// write writes what would become of an object, if anything.
func (d *difference) write(w io.Writer) {
	name := strings.ToLower(d.ref.Kind) + "/" + d.ref.Name
	switch {
	case d.refused != "":
		_, _ = fmt.Fprintf(w, "%s would be refused: %s\n", name, d.refused)
		return
	case d.unknown != "":
		_, _ = fmt.Fprintf(w, "%s is not compared: %s\n", name, d.unknown)
		return
	case d.before == nil && d.after == nil:
		return
	case d.after == nil:
		_, _ = fmt.Fprintf(w, "%s would be deleted\n", name)
		return
	case d.recreated:
		_, _ = fmt.Fprintf(w, "%s would be deleted and created again, because an immutable field changes\n", name)
	case d.before == nil:
		_, _ = fmt.Fprintf(w, "%s would be created\n", name)
	}
	before, after := hidden(stripped(d.before), stripped(d.after))
	_, lines, _ := bytes.Cut(diff.Diff(name+" now", text(before), name+" then", text(after)), []byte("\n")) // the first names both again
	_, _ = w.Write(lines)
}

// stripped is an object without what the API server and the manager set on their own.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	c := u.DeepCopy()
	unstructured.RemoveNestedField(c.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	for _, key := range []string{vocabulary.PlanAnnotation, vocabulary.PhaseAnnotation, vocabulary.StepAnnotation, vocabulary.ExecutionAnnotation} {
		unstructured.RemoveNestedField(c.Object, "metadata", "annotations", key)
	}
	unstructured.RemoveNestedField(c.Object, "spec", "template", "metadata", "creationTimestamp")
	return c
}

// hidden are two states of an object without the values of a Secret: whether they differ is
// all that is shown.
func hidden(before, after *unstructured.Unstructured) (_, _ *unstructured.Unstructured) {
	if isSecret(before) || isSecret(after) {
		mask(before, after, "(hidden)")
		for _, u := range []*unstructured.Unstructured{before, after} {
			if u != nil {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", vocabulary.LastAppliedConfiguration)
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
			}
		}
	}
	return before, after
}

func isSecret(u *unstructured.Unstructured) bool {
	return u != nil && u.GroupVersionKind().GroupKind() == object.SecretKind
}

// mask replaces the values of Secrets: equal ones by the same text.
func mask(before, after *unstructured.Unstructured, text string) {
	for _, field := range []string{"data", "stringData"} {
		old, was := fieldsOf(before, field), fieldsOf(after, field)
		for key, value := range was {
			if other, ok := old[key]; ok && other != value {
				was[key] = text + " changed"
			} else {
				was[key] = text
			}
		}
		for key := range old {
			old[key] = text
		}
	}
}

func fieldsOf(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil {
		return nil
	}
	fields, _ := u.Object[field].(map[string]any)
	return fields
}

// text is an object as YAML, empty if there is none.
func text(u *unstructured.Unstructured) []byte {
	if u == nil {
		return nil
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimLeft(raw, "\n")
}
