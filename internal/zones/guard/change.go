package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// kindScale is the kind of the scale subresource.
const kindScale = "Scale"

// change is a write that may change replicas.
type change struct {
	resource, namespace, name string
	// from and to are nil where an object does not say.
	from, to *int32
	// uid and resourceVersion are those of the object before.
	uid             types.UID
	resourceVersion string
	// labels are those of the object before; a Scale has none.
	labels  map[string]string
	isScale bool
}

// scalable is what is read of objects that have replicas.
type scalable struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Labels          map[string]string `json:"labels"`
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
}

// changeOf reads a request. The error says what could not be understood.
func changeOf(req *admission.Request) (change, error) {
	before, err := scalableOf(req.OldObject, "old")
	if err != nil {
		return change{}, err
	}
	after, err := scalableOf(req.Object, "new")
	if err != nil {
		return change{}, err
	}
	return change{
		resource: req.Resource.Resource, namespace: req.Namespace, name: req.Name,
		from: before.Spec.Replicas, to: after.Spec.Replicas,
		uid: before.Metadata.UID, resourceVersion: before.Metadata.ResourceVersion, labels: before.Metadata.Labels, isScale: before.Kind == kindScale,
	}, nil
}

func scalableOf(raw runtime.RawExtension, which string) (scalable, error) {
	var s scalable
	if len(raw.Raw) == 0 {
		return s, fmt.Errorf("can't decode %s object, allowing the change, err: %w", which, errors.New("there is none"))
	}
	if err := json.Unmarshal(raw.Raw, &s); err != nil {
		return s, fmt.Errorf("can't decode %s object, allowing the change, err: %w", which, err)
	}
	if !slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", kindScale}, s.Kind) {
		return s, fmt.Errorf("can't get %s replicas, allowing the change, err: unsupported type %s", which, s.GroupVersionKind())
	}
	if s.Kind == kindScale && s.Spec.Replicas == nil { // where zero is left out
		s.Spec.Replicas = new(int32)
	}
	return s, nil
}

// of is the change of the StatefulSet as it is now, whatever the request says that it was.
func (c *change) of(set *appsv1.StatefulSet) change {
	now := *c
	now.from, now.resourceVersion, now.labels = set.Spec.Replicas, set.ResourceVersion, set.Labels
	return now
}

// isOf is true unless the request is about another object with the same name.
func (c *change) isOf(obj client.Object) bool { return c.uid == "" || c.uid == obj.GetUID() }

// lowers is true if the change takes replicas away.
func (c *change) lowers() bool { return c.from != nil && c.to != nil && *c.to < *c.from }

// unclear is true if only one of the objects says how many there are to be.
func (c *change) unclear() bool { return (c.from == nil) != (c.to == nil) }

// refused is the sentence of a refusal.
func (c *change) refused(because string) string {
	return c.downscale() + " is not allowed because " + because
}

func (c *change) downscale() string {
	return fmt.Sprintf("downscale of %s/%s in %s from %d to %d replicas", c.resource, c.name, c.namespace, *c.from, *c.to)
}
