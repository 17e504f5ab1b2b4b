package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Reloaded is what annotations of Reloader ask for. Which objects count depends on those of the namespace.
type Reloaded struct {
	Wants   reloader.Wants
	options *reloader.Options
	// reads are the references of the Pod template.
	reads []content.Reference
	// missed is true if Reloader has rolled the workload for another content than there was when the objects were
	// listed: it counts until what it runs with is recorded.
	missed bool
}

// ReadReloaded reads a workload of which neither its own annotation nor a policy says whether it is tracked, by
// its annotations of Reloader. It was opted in when these were written, or when Spillway began to read them.
func ReadReloaded(obj client.Object, o *reloader.Options) Workload {
	if _, _, says := vocabulary.ConfigTracked.Lookup(obj.GetAnnotations()); says {
		return Read(obj)
	}
	wants := o.Read(reloadedOf(obj))
	if !wants.MayRoll() {
		w := Read(obj)
		w.Settings.Problems = append(w.Settings.Problems, problemsOf(wants.Problems)...)
		return w
	}
	w := Read(asTracked(obj))
	w.Reloaded = &Reloaded{Wants: wants, options: o, reads: w.Demand.Uses}
	w.Settings.TrackedBy, w.isLater = "annotations of Reloader", true
	w.Settings.Problems = append(w.Settings.Problems, problemsOf(wants.Problems)...)
	w.Settings.CollectFor = cmp.Or(w.Settings.CollectFor, wants.Delay)
	w.optedIn = kube.WrittenAt(obj, o.Triggers(obj.GetAnnotations())...)
	if since := o.SinceIn(obj.GetNamespace()); since.After(w.optedIn) {
		w.optedIn = since
	}
	return w
}

// reloadedOf is what is read of a workload for it.
func reloadedOf(obj client.Object) reloader.Workload {
	template := TemplateOf(obj)
	return reloader.Workload{Kind: KindOf(obj), Annotations: obj.GetAnnotations(), Template: template.Annotations, Pod: &template.Spec}
}

func problemsOf(found []reloader.Problem) []Problem {
	problems := make([]Problem, 0, len(found))
	for _, p := range found {
		problems = append(problems, Problem(p))
	}
	return problems
}

// DemandOf is the config that counts, with these objects in the namespace: all keys of each object, and what
// the native annotations name.
func (r *Reloaded) DemandOf(d content.Demand, objects []reloader.Object) content.Demand {
	marks := make(map[content.Object]reloader.Mark, len(objects))
	for _, o := range objects {
		marks[content.Object{Kind: o.Kind, Namespace: d.Namespace, Name: o.Name}] = o.Mark
	}
	d.Uses = r.readAs(marks)
	for _, kind := range []content.Kind{content.ConfigMap, content.Secret} {
		for _, name := range r.Wants.Names(kind) { // one that does not exist may have gone
			if _, listed := marks[content.Object{Kind: kind, Namespace: d.Namespace, Name: name}]; !listed {
				objects = append(objects, reloader.Object{Kind: kind, Name: name})
			}
		}
	}
	isUsed := make(map[content.Object]bool, len(d.Uses))
	for i := range d.Uses {
		isUsed[d.Uses[i].Object] = true
	}
	for _, o := range objects {
		of := content.Reference{Object: content.Object{Kind: o.Kind, Namespace: d.Namespace, Name: o.Name}, Extra: true}
		if !isUsed[of.Object] && len(d.Uses) < content.MostReferences && r.Wants.RolledBy(o.Kind, o.Name, o.Mark) {
			d.Uses = append(d.Uses, of)
		}
	}
	d.Wave = d.Uses
	return d
}

// readAs are the references of the Pod template that count, and all keys of what they refer to.
func (r *Reloaded) readAs(marks map[content.Object]reloader.Mark) []content.Reference {
	var uses, whole []content.Reference
	for _, ref := range r.reads {
		if !ref.Extra && !r.Wants.RolledBy(ref.Object.Kind, ref.Object.Name, marks[ref.Object]) {
			continue
		}
		uses = append(uses, ref)
		if !slices.ContainsFunc(whole, func(w content.Reference) bool { return w.Object == ref.Object }) {
			whole = append(whole, content.Reference{Object: ref.Object})
		}
	}
	whole = slices.DeleteFunc(whole, func(w content.Reference) bool {
		return slices.ContainsFunc(uses, func(u content.Reference) bool { return u.Object == w.Object && u.Whole() })
	})
	return append(uses, whole...)
}

// candidates are the objects that may count where those of the namespace cannot be listed: what the Pod template
// refers to, and the names that a list has.
func (r *Reloaded) candidates(kind content.Kind) []reloader.Object {
	names := r.Wants.Names(kind)
	for _, ref := range r.reads {
		if ref.Object.Kind == kind && !ref.Extra && !slices.Contains(names, ref.Object.Name) {
			names = append(names, ref.Object.Name)
		}
	}
	slices.Sort(names)
	objects := make([]reloader.Object, 0, len(names))
	for _, name := range names {
		objects = append(objects, reloader.Object{Kind: kind, Name: name})
	}
	return objects
}

// SlimFor is [Slim] for a manager that reads annotations of Reloader.
func SlimFor(o *reloader.Options) func(client.Object) {
	if o == nil {
		return Slim
	}
	return func(obj client.Object) {
		written := kube.Attribution(obj, o.Triggers(obj.GetAnnotations())...)
		Slim(obj)
		_, _, says := vocabulary.ConfigTracked.Lookup(obj.GetAnnotations())
		if !says && vocabulary.ConfigSeen.Get(obj.GetAnnotations()) == "" {
			obj.SetManagedFields(written)
		}
	}
}

// EditedFirst is when an object was written first of those of which the record of what counted has another content:
// a manager that begins has not seen the edits. One that was edited in the second of its creation, or deleted and
// created again, counts as well. It is zero if none was.
func (w *Workload) EditedFirst() (first time.Time) {
	s, ok := readSeen(w.seen, w.Accepted())
	if !ok {
		return time.Time{}
	}
	for i := range w.Uses {
		if u := &w.Uses[i]; !u.Ignored && w.isChanged(u.Object, s) {
			first = ring.Earlier(first, w.Config.WrittenAt(u.Object))
		}
	}
	return first
}

// isEditedSince reports whether some content that counts was written after a time: not when the object was
// created, for which Reloader rolls nothing.
func (w *Workload) isEditedSince(at time.Time) bool {
	return slices.ContainsFunc(w.Uses, func(u content.Use) bool { return !u.Ignored && !w.Config.WrittenAfter(u.Object, at).IsZero() })
}

// lacksSeen reports whether a workload that is tracked by annotations of Reloader has no record of what counts.
func (w *Workload) lacksSeen() bool {
	return w.Reloaded != nil && w.seen == ""
}

// beginsReloaded reports whether what it runs with is recorded, and it is not rolled: it may have been tracked in
// another way before.
func (w *Workload) beginsReloaded() bool { return w.lacksSeen() && !w.isEdited }

// changesOnlyInScope reports whether the hash is another one only because other objects count than when it was
// written or recorded: annotations were edited, or an object has appeared or gone. Reloader rolls nothing for
// that, but with --reload-on-create and --reload-on-delete. The record is of one hash, so that a workload which
// a user took back to an earlier one is rolled.
func (w *Workload) changesOnlyInScope() bool {
	seen, ok := readSeen(w.seen, w.Accepted())
	if !ok || w.Accepted() == w.Hashes.Desired {
		return false
	}
	return !slices.ContainsFunc(w.Uses, func(u content.Use) bool { return !u.Ignored && w.isChanged(u.Object, seen) })
}

// isChanged reports whether an object has another content than was recorded.
func (w *Workload) isChanged(o content.Object, s seen) bool {
	was, known := s.contents[keyOf(o)]
	now, exists := w.Config.DigestOf(o)
	flags := reloader.Options{OnCreate: true, OnDelete: true}
	if w.Reloaded != nil {
		flags = *w.Reloaded.options
	}
	switch {
	case !known:
		return exists && w.Reloaded != nil && flags.OnCreate && w.Config.IsCreatedSince(o, s.at)
	case was == pin.Absent:
		return exists && flags.OnCreate
	case !exists:
		return flags.OnDelete
	default:
		return was != pin.ShortDigest(now)
	}
}

// seen is the record of the objects that counted, and of their contents.
type seen struct {
	at       time.Time
	contents map[string]string
}

// seenText is the record of what counts now, with the hash of it.
func (w *Workload) seenText(at time.Time) string {
	return textOf(pin.ShortDigest(w.Hashes.Desired), at, w.contents())
}

// contents are the contents of the objects that count now, by their keys in the record.
func (w *Workload) contents() map[string]string {
	contents := map[string]string{}
	for i := range w.Uses {
		if o := w.Uses[i].Object; !w.Uses[i].Ignored {
			digest, exists := w.Config.DigestOf(o)
			if !exists {
				digest = pin.Absent
			}
			contents[keyOf(o)] = pin.ShortDigest(digest)
		}
	}
	return contents
}

// textOf is the record of contents, headed by what it is of.
func textOf(of string, at time.Time, contents map[string]string) string {
	parts := []string{fmt.Sprintf("%s@%d", of, at.Unix())}
	for _, key := range slices.Sorted(maps.Keys(contents)) {
		parts = append(parts, key+"="+contents[key])
	}
	return strings.Join(parts, ",")
}

// readSeen reads the record of a hash; false if it is of another one, or cannot be read.
func readSeen(text, hash string) (seen, bool) {
	if hash == "" {
		return seen{}, false
	}
	return readSeenOf(text, pin.ShortDigest(hash))
}

// readSeenOf reads a record that is headed by what it is of.
func readSeenOf(text, want string) (seen, bool) {
	head, rest, _ := strings.Cut(text, ",")
	of, at, _ := strings.Cut(head, "@")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if of != want || err != nil {
		return seen{}, false
	}
	s := seen{at: time.Unix(seconds, 0), contents: map[string]string{}}
	for entry := range strings.SplitSeq(rest, ",") {
		if key, digest, found := strings.Cut(entry, "="); found {
			s.contents[key] = digest
		}
	}
	return s, true
}

// keyOf stands for an object in the record: names may be long, and there may be many.
func keyOf(o content.Object) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", o))
	return hex.EncodeToString(sum[:5])
}

// setSeen records what counts now, of a workload that is tracked by annotations of Reloader.
func (e *Edit) setSeen(at time.Time) {
	if e.w.Reloaded == nil {
		e.drop(vocabulary.ConfigSeen)
		return
	}
	e.annotate(vocabulary.ConfigSeen, e.w.seenText(at))
}

// testReloaded makes it a precondition that the annotations of Reloader are those by which it was decided.
func (e *Edit) testReloaded() {
	if e.w.Reloaded == nil {
		return
	}
	has := e.w.Object.GetAnnotations()
	for _, name := range e.w.Reloaded.options.Decisive() {
		if value, found := has[name]; found {
			e.test(pointer(annotations, name), value)
		} else {
			e.test(pointer(annotations, name), nil)
		}
	}
}
