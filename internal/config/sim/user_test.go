package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// users do something, rarely.
func (w *world) users() {
	if w.chance(0.06) {
		w.edit()
	}
	if len(w.units) == 0 || !w.chance(0.06) {
		return
	}
	u := w.units[w.rnd.IntN(len(w.units))]
	if u.object(w) == nil {
		return
	}
	switch w.rnd.IntN(10) {
	case 0, 1:
		w.undo(u)
	case 2:
		w.replace(u)
	case 3:
		w.change(u, "restart", func(obj client.Object) {
			t := workload.TemplateOf(obj)
			if t.Annotations == nil {
				t.Annotations = map[string]string{}
			}
			t.Annotations["restarted"] = w.now.Format("150405")
		})
	case 4:
		w.change(u, "opt", func(obj client.Object) {
			a := maps.Clone(obj.GetAnnotations())
			if a == nil {
				a = map[string]string{}
			}
			if a[vocabulary.ConfigTracked.Native] == "true" {
				delete(a, vocabulary.ConfigTracked.Native)
			} else {
				a[vocabulary.ConfigTracked.Native] = "true"
			}
			obj.SetAnnotations(a)
		})
	case 5:
		w.scale(u, []int{0, 1, 3}[w.rnd.IntN(3)])
	case 6:
		if u.kind == workload.Deployment {
			w.change(u, "pause", func(obj client.Object) { d, _ := obj.(*appsv1.Deployment); d.Spec.Paused = !d.Spec.Paused })
		}
	case 7:
		w.notef("%s is deleted", u.name)
		w.count("deleted")
		w.oracle.touches(u)
		w.must(w.store.Delete(quiet, u.object(w)))
		w.units = slices.DeleteFunc(w.units, func(o *unit) bool { return o == u })
		w.podsAt++
	case 8:
		if len(w.units) < 9 {
			w.addUnit()
		}
	case 9:
		w.turn(u)
	}
}

// turn takes the room for new Pods of a workload, or gives it back.
func (w *world) turn(u *unit) {
	if u.noRoom != "" {
		w.give(u)
	} else {
		u.noRoom = []string{full, quota}[w.rnd.IntN(2)]
	}
	w.notef("%s: room: %s", u.name, u.noRoom)
	w.count("room")
	w.oracle.excuse(u)
}

// edit gives an object a new value, an earlier one, or deletes it and creates it again.
func (w *world) edit() {
	o := w.all[w.rnd.IntN(len(w.all))]
	if _, gone := w.absent[o]; gone {
		return
	}
	switch n := w.rnd.IntN(10); {
	case n < 3:
		w.put(o, w.value(good))
	case n < 7:
		w.put(o, w.value([]string{crash, late, never}[w.rnd.IntN(3)]))
	case n < 9:
		w.put(o, w.before[o][w.rnd.IntN(len(w.before[o]))])
		w.count("returns")
	default:
		obj := o.Kind.New()
		obj.SetNamespace(o.Namespace)
		obj.SetName(o.Name)
		w.absent[o] = w.now.Add(w.seconds(0, 20))
		w.must(w.store.Delete(quiet, obj))
		w.count("created again")
		w.notef("%s is deleted", o.Name)
		return
	}
	w.count("edits")
	w.notef("%s is %s", o.Name, w.live[o])
	if w.flaps && w.chance(0.3) { // a blip at the moment of the edit
		for _, u := range w.units {
			if len(u.pods) > 0 && w.chance(0.5) {
				u.pods[0].blip = w.now.Add(w.seconds(5, 60))
				u.pods[0].live(w, u)
			}
		}
	}
}

// undo has a workload have its template before, as kubectl rollout undo does.
func (w *world) undo(u *unit) {
	if len(u.earlier) == 0 {
		return
	}
	t := u.earlier[0]
	w.change(u, "undo", func(obj client.Object) { *workload.TemplateOf(obj) = *t.DeepCopy() })
}

// replace writes the workload as its manifest has it: all that the manager wrote is gone.
func (w *world) replace(u *unit) {
	w.change(u, "replace", func(obj client.Object) {
		obj.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
		workload.TemplateOf(obj).Annotations = nil
	})
}

func (w *world) scale(u *unit, n int) {
	u.replicas = n
	w.change(u, fmt.Sprintf("scale to %d", n), func(obj client.Object) {
		switch o := obj.(type) {
		case *appsv1.Deployment:
			o.Spec.Replicas = new(int32(n))
		case *appsv1.StatefulSet:
			o.Spec.Replicas = new(int32(n))
		}
	})
}

// change writes a workload as a user does.
func (w *world) change(u *unit, what string, change func(client.Object)) {
	before := u.object(w)
	after, _ := before.DeepCopyObject().(client.Object)
	change(after)
	was := fingerprint(workload.TemplateOf(before))
	if w.hooked {
		after = w.admitted(before, after)
	}
	w.notef("%s: %s", u.name, what)
	w.count(what)
	w.oracle.touches(u)
	if is := fingerprint(workload.TemplateOf(after)); is != was {
		u.earlier = append([]corev1.PodTemplateSpec{*workload.TemplateOf(before)}, u.earlier...)
		u.unhashed = vocabulary.ConfigHash.Get(workload.TemplateOf(after).Annotations) == ""
		u.has = maps.Clone(u.hasOf[is]) // if that is known
		if u.has == nil {
			u.has = map[content.Object]string{}
		}
	}
	w.must(w.store.Update(quiet, after))
}

// allows answers that users may read everything.
type allows struct{ client.Client }

// Create implements [client.Writer].
func (a allows) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if r, ok := obj.(*authorizationv1.LocalSubjectAccessReview); ok {
		r.Status.Allowed = true
	}
	return nil
}

// admitted is a workload as the webhook of the ring leaves it.
func (w *world) admitted(before, after client.Object) client.Object {
	kind := workload.KindOf(after)
	raw := func(obj client.Object) runtime.RawExtension {
		if obj == nil {
			return runtime.RawExtension{}
		}
		raw, err := json.Marshal(obj)
		w.must(err)
		return runtime.RawExtension{Raw: raw}
	}
	req := webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Namespace: namespace, Name: after.GetName(),
		Operation: admissionv1.Create, Object: raw(after), OldObject: raw(before),
	}}
	if before != nil {
		req.Operation = admissionv1.Update
	}
	res := admit.NewOffline(allows{w.store}, admit.Options{Now: func() time.Time { return w.now }, SuspendBy: workload.SuspendNot}).Handle(quiet, req)
	if !res.Allowed {
		w.oracle.complainf("the webhook refuses: %v", res.Result)
		return after
	}
	operations, err := json.Marshal(res.Patches)
	w.must(err)
	patch, err := jsonpatch.DecodePatch(operations)
	w.must(err)
	patched, err := patch.Apply(req.Object.Raw)
	w.must(err)
	made := workload.New(kind)
	w.must(json.Unmarshal(patched, made))
	return made
}

// endStorm ends the storm: all content is good, and no user holds anything back.
func (w *world) endStorm() {
	w.storm = false
	w.notef("the storm is over")
	for _, o := range w.all {
		w.put(o, w.value(good))
	}
	for _, u := range w.units {
		obj := u.object(w)
		if obj.GetAnnotations()[vocabulary.ConfigTracked.Native] != "true" {
			w.change(u, "opted in", func(obj client.Object) {
				a := obj.GetAnnotations()
				if a == nil {
					a = map[string]string{}
				}
				a[vocabulary.ConfigTracked.Native] = "true"
				obj.SetAnnotations(a)
			})
		}
		for _, p := range u.pods {
			p.blip = time.Time{}
		}
		if u.noRoom != "" && w.chance(0.5) { // what comes back is caught up
			w.give(u)
		}
	}
}
