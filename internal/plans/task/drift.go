package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// What a plan has applied differs once another client has changed or deleted it. The API server knows: a client
// that changes a field takes it from the Instance in managedFields. So no value is read or remembered, and what
// no template sets, such as a default, or replicas that are not in the template, is no difference.

const (
	// driftShown is how many objects are named that differ.
	driftShown = 10
	// ownsReplicas ends what identifies fields of which the replicas are one.
	ownsReplicas = "+replicas"
)

// Head is what is compared of an object.
type Head struct {
	UID             types.UID
	ResourceVersion string
	// Applied identifies the fields that the Instance owns by applying them, empty if it owns none.
	Applied string
	// By is the field manager that was the last to write it, besides Spillway's.
	By string
	// isScaled is true if its replicas are those of what scales it.
	isScaled bool
}

// HeadOf returns the head of an object of an Instance.
func HeadOf(o metav1.Object, instance string) *Head {
	h := &Head{UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
	var last metav1.Time
	for _, e := range o.GetManagedFields() {
		switch {
		case e.Subresource == "status" || e.FieldsV1 == nil:
		case e.Manager == write.FieldOwner(instance) && e.Operation == metav1.ManagedFieldsOperationApply:
			h.Applied = identify(e.FieldsV1.GetRawBytes())
		case e.Subresource == "scale", strings.HasPrefix(e.Manager, kube.FieldOwner):
			h.isScaled = h.isScaled || strings.HasSuffix(identify(e.FieldsV1.GetRawBytes()), ownsReplicas)
		case e.Time == nil || !e.Time.Before(&last):
			h.By = e.Manager
			if e.Time != nil {
				last = *e.Time
			}
		}
	}
	return h
}

// identify identifies a set of fields.
func identify(raw []byte) string {
	fields := map[string]any{}
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	_, has, _ := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:replicas")
	unstructured.RemoveNestedField(fields, "f:spec", "f:replicas")
	sorted, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(sorted)
	id := hex.EncodeToString(sum[:])[:16]
	if has {
		id += ownsReplicas
	}
	return id
}

// isAs is true of an object that has all that was applied. What scales it may have taken the replicas.
func (h *Head) isAs(applied string) bool {
	return h.Applied == applied || h.isScaled && h.Applied == strings.TrimSuffix(applied, ownsReplicas)
}

// Difference is an object of the inventory that differs from what was applied.
type Difference struct {
	object.Ref

	// Entry is its index in the inventory.
	Entry int
	// Head is as it is, nil if it does not exist.
	Head *Head
}

// Drift are the objects of an inventory that differ from what was applied. A Job is not
// compared, as it may be removed once it is complete, nor is what must not, or cannot, be read.
func (s *Snapshot) Drift(inventory []v1beta1.InventoryEntry) (all []Difference, needs Needs) {
	for i, entry := range inventory {
		ref := object.EntryRef(entry)
		_, forbidden := s.Forbidden[ref]
		_, impossible := s.Impossible[ref]
		if entry.Applied == "" || forbidden || impossible || ref.GroupKind() == object.JobKind {
			continue
		}
		head, read := s.head(ref)
		switch {
		case !read:
			needs.Heads = append(needs.Heads, ref)
		case head == nil || !head.isAs(entry.Applied):
			all = append(all, Difference{Ref: ref, Entry: i, Head: head})
		}
	}
	return all, needs
}

// head is that of an object that was read, nil if it does not exist.
func (s *Snapshot) head(ref object.Ref) (head *Head, read bool) {
	if head, read = s.Heads[ref]; read {
		return head, true
	}
	live, read := s.Objects[ref]
	if live == nil {
		return nil, read
	}
	return HeadOf(live, s.Instance.Name), true
}

// DriftOf is what the status says of objects that differ, nil if none does.
func DriftOf(all []Difference) *v1beta1.Drift {
	if len(all) == 0 {
		return nil
	}
	drift := &v1beta1.Drift{Count: int32(len(all))} //nolint:gosec // an Instance has at most MaxObjects
	for _, x := range all[:min(len(all), driftShown)] {
		o := v1beta1.DriftedObject{Group: x.Group, Kind: x.Kind, Namespace: x.Namespace, Name: x.Name, Missing: x.Head == nil}
		if x.Head != nil {
			o.By = x.Head.By
		}
		drift.Objects = append(drift.Objects, o)
	}
	return drift
}

// DriftSentence names the objects that differ, empty if none does.
func DriftSentence(d *v1beta1.Drift) string {
	if d == nil {
		return ""
	}
	var names []string
	for _, o := range d.Objects {
		name := o.Kind + " " + o.Name
		switch {
		case o.Missing:
			name += " (deleted)"
		case o.By != "":
			name += " (changed by " + o.By + ")"
		}
		names = append(names, name)
	}
	if more := int(d.Count) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	verb := "objects differ"
	if d.Count == 1 {
		verb = "object differs"
	}
	return fmt.Sprintf("%d %s from what was applied: %s", d.Count, verb, strings.Join(names, ", "))
}
