package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// latest stands for what the template says, as the revision to go to.
const latest = "latest"

// goingBack is which revision to go to.
type goingBack struct {
	*fleeter

	to string
}

func newFleetRollback(f *fleeter) *cobra.Command {
	g := &goingBack{fleeter: f}
	cmd := f.gives(f.command("rollback", "[--to REVISION]", "Go back to an older revision, under the same budget, and stay there",
		`shop -n clusters --reason "checkout fails"`, g.run))
	cmd.Flags().StringVar(&g.to, "to", "", "the revision, by name or number, or \"latest\" for what the template says (default: the last other one that got everywhere)")
	return cmd
}

func (g *goingBack) run(ctx context.Context) error {
	return g.steer(ctx, reasonRolledBackTo, fleet.Steering{Verb: fleet.VerbRollback}, func(module client.Object, spec *fleetv1.ModuleSpec) (string, error) {
		if g.to == latest {
			return g.forward(spec)
		}
		revisions, err := revisionsOf(ctx, g.client, g.module, module)
		if err != nil {
			return "", err
		}
		_, status := fleet.Parts(module)
		to, err := g.aim(revisions, spec, status)
		if err != nil {
			return "", err
		}
		spec.TargetRevision = to
		said := fmt.Sprintf("%s goes to %s, and stays there whatever its template says; go forward again with: %s",
			g.module, to, g.module.command("fleet rollback", "--to", latest))
		if spec.Suspend {
			said += "\nit is suspended: nothing moves before: " + g.module.command("fleet resume")
		}
		return said, nil
	})
}

// forward lets the template count again.
func (g *goingBack) forward(spec *fleetv1.ModuleSpec) (string, error) {
	if spec.TargetRevision == "" {
		return "", fmt.Errorf("%s goes to what its template says already", g.module)
	}
	spec.TargetRevision = ""
	return g.module.String() + " goes to what its template says", nil
}

// aim is the name of the revision that is meant.
func (g *goingBack) aim(revisions []revision, spec *fleetv1.ModuleSpec, status *fleetv1.ModuleStatus) (string, error) {
	to := g.to
	if to == "" {
		to = lastGood(revisions, status)
	}
	i := slices.IndexFunc(revisions, func(r revision) bool { return r.Name == to || strconv.FormatInt(r.Number, 10) == to })
	switch {
	case to == "":
		return "", fmt.Errorf("%s has no other revision that got everywhere; choose one with --to: %s", g.module, namesOf(revisions))
	case i < 0:
		return "", fmt.Errorf("%s has no revision %q; choose from %s", g.module, to, namesOf(revisions))
	case revisions[i].Name == spec.TargetRevision:
		return "", fmt.Errorf("%s goes to %s already; go forward with: %s", g.module, revisions[i].Name, g.module.command("fleet rollback", "--to", latest))
	default:
		return revisions[i].Name, nil
	}
}

// lastGood is the last revision that got everywhere, other than the one that is rolled
// out; empty if none is kept.
func lastGood(revisions []revision, status *fleetv1.ModuleStatus) string {
	if status.CurrentRevision != status.TargetRevision {
		return status.CurrentRevision
	}
	for i := range status.History {
		past := &status.History[i]
		kept := slices.ContainsFunc(revisions, func(r revision) bool { return r.Name == past.Revision })
		if past.Outcome == "Complete" && past.Revision != status.TargetRevision && kept {
			return past.Revision
		}
	}
	return ""
}

func namesOf(revisions []revision) string {
	if len(revisions) == 0 {
		return "there is none yet; is a manager running with --rings=fleet?"
	}
	names := make([]string, len(revisions))
	for i := range revisions {
		names[i] = fmt.Sprintf("%s (%d)", revisions[i].Name, revisions[i].Number)
	}
	return strings.Join(names, ", ")
}

// revision is a ModuleRevision, and what became of it.
type revision struct {
	Name   string `json:"name"`
	Number int64  `json:"number"`
	// MadeAt is when the module first stood for it, WrittenBy the field manager that
	// wrote it, empty if that is not known.
	MadeAt    time.Time `json:"madeAt"`
	WrittenBy string    `json:"writtenBy,omitempty"`
	Source    string    `json:"source"`
	Resolved  string    `json:"resolved,omitempty"`
	// StartedAt and EndedAt are of its last rollout, Outcome is how that went, and
	// SteeredBy is who asked for it where it was a rollback.
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Outcome   string     `json:"outcome,omitempty"`
	SteeredBy string     `json:"steeredBy,omitempty"`
}

// revisionsOf are those of a module, the newest first.
func revisionsOf(ctx context.Context, c client.Client, m moduleRef, module client.Object) ([]revision, error) {
	list := &spillwayv1.ModuleRevisionList{}
	if err := c.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		return nil, fmt.Errorf("list ModuleRevisions: %w", err)
	}
	revisions := []revision{}
	for i := range list.Items {
		if r := &list.Items[i]; metav1.IsControlledBy(r, module) {
			revisions = append(revisions, revisionOf(r, module))
		}
	}
	slices.SortFunc(revisions, func(a, b revision) int { return int(b.Number - a.Number) })
	return revisions, nil
}

func revisionOf(r *spillwayv1.ModuleRevision, module client.Object) revision {
	_, status := fleet.Parts(module)
	seen := revision{
		Name: r.Name, Number: r.Spec.Number, MadeAt: r.CreationTimestamp.Time, WrittenBy: vocabulary.WrittenBy.Get(r.Annotations),
		Source: sourceText(r.Spec.Template.Sync.Source), Resolved: r.Status.Resolved,
	}
	i := slices.IndexFunc(status.History, func(p fleetv1.PastRollout) bool { return p.Revision == r.Name })
	if i < 0 {
		return seen
	}
	past := &status.History[i]
	seen.StartedAt, seen.Outcome = &past.StartedAt.Time, past.Outcome
	if past.FinishedAt != nil {
		seen.EndedAt = &past.FinishedAt.Time
	}
	if s := fleet.SteeringOf(module); s != nil && s.Verb == fleet.VerbRollback && s.Revision == r.Name {
		seen.SteeredBy = s.By
	}
	return seen
}

// sourceText is the exact version that a revision stands for.
func sourceText(s *fleetv1.Source) string {
	switch {
	case s == nil:
		return ""
	case s.Git != nil:
		return s.Git.Version.Tag + s.Git.Version.Revision
	case s.OCI != nil:
		return s.OCI.Version.Tag + s.OCI.Version.Digest
	default:
		return ""
	}
}

func newFleetHistory(f *fleeter) *cobra.Command {
	cmd := f.command("history", "", "List the revisions of a module, who wrote them, and what became of them", "shop -n clusters", func(ctx context.Context) error {
		module, err := f.get(ctx)
		if err != nil {
			return err
		}
		revisions, err := revisionsOf(ctx, f.client, f.module, module)
		if err != nil {
			return err
		}
		return show(f.out, f.output, revisions, func(w io.Writer) { writeRevisions(w, revisions) })
	})
	outputFlag(cmd, &f.output)
	return cmd
}

func writeRevisions(w io.Writer, revisions []revision) {
	if len(revisions) == 0 {
		_, _ = fmt.Fprintln(w, "It has no revision yet; is a manager running with --rings=fleet?")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "NUMBER\tREVISION\tVERSION\tMADE\tBY\tLAST ROLLOUT\tOUTCOME")
	for i := range revisions {
		r := &revisions[i]
		began := ""
		if r.StartedAt != nil {
			began = r.StartedAt.UTC().Format(momentLayout)
		}
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Number, r.Name, r.Source, r.MadeAt.UTC().Format(momentLayout), r.WrittenBy, began, outcomeText(r))
	}
	_ = t.Flush() // to a writer that the caller chose
}

func outcomeText(r *revision) string {
	if r.SteeredBy == "" {
		return r.Outcome
	}
	return r.Outcome + ", by " + r.SteeredBy
}
