package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
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

// prepareWorkload lets a workload go back to an earlier revision, with its Pod template and
// its config.
func prepareWorkload(ctx context.Context, c client.Client, r Request, who Author) (*Write, error) {
	obj, err := read(ctx, c, r.Ref)
	if err != nil {
		return nil, err
	}
	w := &Write{
		Object: obj, before: copyOf(obj), Word: ReasonRolledBackTo,
		Next: "it stays there until its config changes; to roll it for the present config: spillway retry for what differs, which spillway diff names",
	}
	to, err := earlier(ctx, c, r, obj)
	if err != nil {
		return nil, err
	}
	if err := exist(ctx, c, r.Ref, to.Pins); err != nil {
		return nil, err
	}
	*workload.TemplateOf(obj) = *to.Template.DeepCopy()
	if err := hold(ctx, c, obj, who); err != nil {
		return nil, err
	}
	w.Said = fmt.Sprintf("%s rolled back to revision %d", r.Ref, to.Number)
	return w.aboutItself(c)
}

func earlier(ctx context.Context, c client.Client, r Request, obj client.Object) (*revisions.Revision, error) {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return nil, fmt.Errorf("%s is paused (spec.paused); resume it first with: kubectl rollout resume %s", r.Ref, shell.Quote(r.String()))
	}
	all, err := revisions.Of(ctx, c, obj)
	if err != nil {
		return nil, err
	}
	to := revisions.Previous(all)
	if r.To != "" {
		if to, err = Numbered(all, r.Ref, "--to", r.To); err != nil {
			return nil, err
		}
	}
	switch {
	case to == nil:
		return nil, fmt.Errorf("%s has no earlier revision", r.Ref)
	case to.Current:
		return nil, fmt.Errorf("%s is at revision %d already", r.Ref, to.Number)
	case len(to.Pins) == 0:
		return nil, fmt.Errorf("revision %d of %s has no pins: its Pods would start with the present config; to restore the Pod template alone: kubectl rollout undo %s --to-revision=%d -n %s",
			to.Number, r.Ref, shell.Quote(r.String()), to.Number, shell.Quote(r.Namespace))
	case workload.IsSuspendedTemplate(&to.Template):
		return nil, fmt.Errorf("revision %d of %s is suspended: its Pods would never be scheduled; choose from %s", to.Number, r.Ref, numbers(all))
	}
	return to, nil
}

// exist fails if Pods with these pins could not start: a snapshot is missing, and the manager
// cannot write it again because the object has another content.
func exist(ctx context.Context, c client.Client, of describe.Ref, pins pin.Pins) error {
	kept, err := revisions.SnapshotsIn(ctx, c, of.Namespace)
	if err != nil {
		return err
	}
	for _, p := range pins {
		if kept.Has(p) {
			continue
		}
		o := content.Object{Kind: p.Kind, Namespace: of.Namespace, Name: p.Name}
		present, err := revisions.PresentOf(ctx, c, o)
		if err != nil {
			return err
		}
		if present != p {
			return fmt.Errorf("%s %s, the snapshot of %s %s, not found: Pods of %s could not start; restore it from a backup, or choose another revision", p.Kind, p.Snapshot(), p.Kind, p.Name, of)
		}
	}
	return nil
}

// hold records what the objects contain now, so that the workload is not rolled forward again.
func hold(ctx context.Context, c client.Client, obj client.Object, who Author) error {
	var objects []content.Object
	for _, ref := range pin.References(&workload.TemplateOf(obj).Spec) {
		objects = append(objects, content.Object{Kind: ref.Kind, Namespace: obj.GetNamespace(), Name: ref.Name})
	}
	facts, err := revisions.Facts(ctx, c, objects...)
	if err != nil {
		return err
	}
	seen := make(pin.Pins, len(objects))
	for i, o := range objects {
		seen[i] = revisions.PinOf(facts, o)
	}
	at := who.At.UTC().Truncate(time.Millisecond)
	for _, retried := range facts.Retries() { // it comes after what was asked for before
		if retried.After(at) {
			at = retried
		}
	}
	workload.SetUndone(obj, seen, at, who.By, who.Reason)
	return nil
}

// PrepareContent pins a workload to another content of an object that it uses. If it had a
// revision with the same pins, its hash makes it that revision again, of which Pods may still
// run.
func PrepareContent(ctx context.Context, c client.Client, ref describe.Ref, to pin.Pin, who Author) (*Write, error) {
	obj, err := read(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	w := &Write{Object: obj, before: copyOf(obj), Word: ReasonRolledBackTo, Said: fmt.Sprintf("%s rolled back to %s", ref, to)}
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return nil, errors.New("is paused (spec.paused); resume it first with: kubectl rollout resume")
	}
	template := workload.TemplateOf(obj)
	pins, err := pin.Parse(vocabulary.Pins.Get(template.Annotations))
	if err != nil {
		return nil, fmt.Errorf("annotation %s of the Pod template: %w", vocabulary.Pins.Native, err)
	}
	pins = replaced(pins, to)
	if err := exist(ctx, c, ref, pins); err != nil {
		return nil, err
	}
	all, err := revisions.Of(ctx, c, obj)
	if err != nil {
		return nil, err
	}
	hash := workload.HashOfPins(pins)
	if same := revisions.Pinned(all, obj, pins); same != nil {
		hash = vocabulary.ConfigHash.Get(same.Template.Annotations)
	}
	workload.SetTemplatePins(template, pins, hash)
	if err := hold(ctx, c, obj, who); err != nil {
		return nil, err
	}
	return w.aboutItself(c)
}

func replaced(pins pin.Pins, by pin.Pin) pin.Pins {
	for i := range pins {
		if pins[i].Kind == by.Kind && pins[i].Name == by.Name {
			pins[i] = by
		}
	}
	return pins
}

// Numbered is the revision that a flag names.
func Numbered(all []revisions.Revision, ref describe.Ref, flag, text string) (*revisions.Revision, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not the number of a revision; choose from %s", flag, text, numbers(all))
	}
	r := revisions.Numbered(all, n)
	if r == nil {
		return nil, fmt.Errorf("%s has no revision %d; choose from %s", ref, n, numbers(all))
	}
	return r, nil
}

func numbers(all []revisions.Revision) string {
	if len(all) == 0 {
		return "none: no revision is kept"
	}
	kept := make([]string, len(all))
	for i := range all {
		kept[i] = strconv.FormatInt(all[i].Number, 10)
	}
	return strings.Join(kept, ", ")
}
