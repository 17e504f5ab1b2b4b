package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// Latest stands for what the template says, as the revision to go to.
const Latest = "latest"

// goingBack is which revision to go to.
type goingBack struct {
	*fleeter

	to string
}

func newFleetRollback(f *fleeter) *cobra.Command {
	g := &goingBack{fleeter: f}
	cmd := f.gives(f.command("rollback", "[--to REVISION]", "Go back to an older revision, under the same budget, and stay there",
		`shop -n clusters --reason "checkout fails"`, g.run))
	cmd.Flags().StringVar(&g.to, "to", "", "the revision, by name or number, or \"latest\" for what the template says (default: the last other one that reached all clusters)")
	return cmd
}

func (g *goingBack) run(ctx context.Context) error {
	module, said := g.named(), ""
	err := change.Apply(ctx, g.client, module, func() (err error) {
		spec, status := model.Parts(module)
		if said, err = g.retarget(ctx, module, spec, status); err != nil {
			return err
		}
		note := model.Steering{Verb: model.VerbRollback, By: g.who.By, Reason: g.who.Reason, At: g.who.At, Revision: spec.TargetRevision}
		return note.Note(module)
	})
	if err != nil {
		return err
	}
	return g.done(ctx, module, module, change.ReasonRolledBackTo, said)
}

// retarget sets the revision to go to, and says what follows.
func (g *goingBack) retarget(ctx context.Context, module client.Object, spec *fleetv1.ModuleSpec, status *fleetv1.ModuleStatus) (string, error) {
	if g.to == Latest {
		return g.forward(spec)
	}
	revisions, err := Revisions(ctx, g.client, g.module, module)
	if err != nil {
		return "", err
	}
	to, err := g.aim(revisions, spec, status)
	if err != nil {
		return "", err
	}
	spec.TargetRevision = to
	said := fmt.Sprintf("%s is set to revision %s, and stays there; to follow its template again: %s",
		g.module, to, g.module.command("fleet rollback", "--to", Latest))
	if spec.Suspend {
		said += "\nit is paused; to continue: " + g.module.command("resume")
	}
	return said, nil
}

// forward lets the template count again.
func (g *goingBack) forward(spec *fleetv1.ModuleSpec) (string, error) {
	if spec.TargetRevision == "" {
		return "", fmt.Errorf("%s follows its template already", g.module)
	}
	spec.TargetRevision = ""
	return g.module.String() + " follows its template again", nil
}

// aim is the name of the revision that is meant.
func (g *goingBack) aim(revisions []Revision, spec *fleetv1.ModuleSpec, status *fleetv1.ModuleStatus) (string, error) {
	to := g.to
	if to == "" {
		to = lastGood(revisions, status)
	}
	i := slices.IndexFunc(revisions, func(r Revision) bool { return r.Name == to || strconv.FormatInt(r.Number, 10) == to })
	switch {
	case len(revisions) == 0:
		return "", fmt.Errorf("%s has no revisions yet; is a manager running with --rings=fleet?", g.module)
	case to == "":
		return "", fmt.Errorf("%s has no other revision that reached all clusters; choose one with --to: %s", g.module, namesOf(revisions))
	case i < 0:
		return "", fmt.Errorf("%s has no revision %q; choose from %s", g.module, to, namesOf(revisions))
	case revisions[i].Name == spec.TargetRevision:
		return "", fmt.Errorf("%s is already set to revision %s; to follow its template again: %s", g.module, revisions[i].Name, g.module.command("fleet rollback", "--to", Latest))
	default:
		return revisions[i].Name, nil
	}
}

// lastGood is the last revision that reached all clusters, other than the one that is rolled
// out; empty if none is kept.
func lastGood(revisions []Revision, status *fleetv1.ModuleStatus) string {
	if status.CurrentRevision != status.TargetRevision {
		return status.CurrentRevision
	}
	for i := range status.History {
		past := &status.History[i]
		kept := slices.ContainsFunc(revisions, func(r Revision) bool { return r.Name == past.Revision })
		if past.Outcome == "Complete" && past.Revision != status.TargetRevision && kept {
			return past.Revision
		}
	}
	return ""
}

func namesOf(revisions []Revision) string {
	names := make([]string, len(revisions))
	for i := range revisions {
		names[i] = fmt.Sprintf("%s (%d)", revisions[i].Name, revisions[i].Number)
	}
	return strings.Join(names, ", ")
}

// Revision is a ModuleRevision, as far as one is chosen by it.
type Revision struct {
	Name   string
	Number int64
}

// Revisions are those of a module, the newest first.
func Revisions(ctx context.Context, c client.Client, m Module, module client.Object) ([]Revision, error) {
	list := &spillwayv1.ModuleRevisionList{}
	if err := c.List(ctx, list, client.InNamespace(m.Namespace)); err != nil {
		return nil, fmt.Errorf("list ModuleRevisions: %w", err)
	}
	revisions := []Revision{}
	for i := range list.Items {
		if r := &list.Items[i]; metav1.IsControlledBy(r, module) {
			revisions = append(revisions, Revision{r.Name, r.Spec.Number})
		}
	}
	slices.SortFunc(revisions, func(a, b Revision) int { return int(b.Number - a.Number) })
	return revisions, nil
}

func newFleetHistory(f *fleeter) *cobra.Command {
	told := &show.History{Env: command.Environment{Now: f.now, Lookup: f.lookup}}
	var cmd *cobra.Command
	cmd = f.command("history", "", "List the revisions of a module, who wrote them, and what became of them", "shop -n clusters", func(context.Context) error {
		return told.Print(cmd, f.client, describe.Ref{Kind: f.module.Kind, Namespace: f.module.Namespace, Name: f.module.Name})
	})
	told.AddFlags(cmd)
	return cmd
}
