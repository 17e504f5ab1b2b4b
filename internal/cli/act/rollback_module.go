package act

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
)

// Latest stands for what the template says, as the revision to go to.
const Latest = "latest"

// goingBack is which revision a module is to go to.
type goingBack struct {
	client client.Client
	module Module
	to     string
}

// prepareModule lets a module go back to an older revision, or follow its template again.
func prepareModule(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	module, err := read(ctx, c, r.Ref)
	if err != nil {
		return nil, err
	}
	g := &goingBack{client: c, module: Module{r.Ref}, to: r.To}
	w := &Write{Object: module, before: copyOf(module), Word: ReasonRolledBackTo, About: g.module.reference(module)}
	spec, status := model.Parts(module)
	if w.Said, err = g.retarget(ctx, module, spec, status); err != nil {
		return nil, err
	}
	return w, note(module, model.VerbRollback, spec, who)
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
		g.module, to, g.module.Command("fleet rollback", "--to", Latest))
	if spec.Suspend {
		said += "\nit is paused; to continue: " + g.module.Command("resume")
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
		return "", fmt.Errorf("%s is already set to revision %s; to follow its template again: %s", g.module, revisions[i].Name, g.module.Command("fleet rollback", "--to", Latest))
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

// Module is a module as a person names it.
type Module struct{ describe.Ref }

// Key returns the namespace and name.
func (m Module) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// Command is what to type to do something with the module.
func (m Module) Command(verb string, args ...string) string {
	return "spillway " + verb + " " + shell.Join(append([]string{m.String(), "-n", m.Namespace}, args...)...)
}

// Assemblages is what kubectl calls the assemblages of such modules.
func (m Module) Assemblages() string {
	if m.Kind == model.KindBootstrap {
		return "remoteassemblage"
	}
	return "proxyassemblage"
}

// reference is what an Event about the module is about.
func (m Module) reference(module client.Object) corev1.ObjectReference {
	return About(fleetv1.GroupVersion.WithKind(m.Kind), module)
}
