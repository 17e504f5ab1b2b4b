package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

// Offline are the guards of replicas without a server: the same answers, asked for one by
// one.
type Offline struct {
	forbids  *forbidder
	prepares *preparer
}

// NewOffline makes the guards answer from what stands for a cluster, and call what answers
// for Pods.
func NewOffline(on kube.Offline, o Options, pods http.RoundTripper) *Offline {
	if o.ClusterDomain == "" {
		o.ClusterDomain = preparehook.DefaultDomain
	}
	return &Offline{
		forbids: &forbidder{options: o, live: on},
		prepares: &preparer{
			options: o, observer: observer{live: on}, keeper: lock.Keeper{Live: on, Writer: on}, caller: preparehook.Over(pods, o.PodTimeout),
		},
	}
}

// RefusedError is what the API server answers to a write that a guard has refused.
type RefusedError struct {
	apierrors.StatusError

	// Forever is true if no later attempt is admitted either.
	Forever bool
}

// Admit asks the guards about a write, as the API server does: nil if they admit it.
func (o *Offline) Admit(ctx context.Context, before, after client.Object) error {
	from, resource := replicasOf(before)
	to, _ := replicasOf(after)
	if from == nil || to == nil || *to >= *from {
		return nil
	}
	req, err := requestOf(resource, before, after)
	if err != nil {
		return err
	}
	if answer := o.forbids.Handle(ctx, req); !answer.Allowed {
		return refusedBy("no-downscale", answer, true)
	}
	if resource != "statefulsets" {
		return nil
	}
	if answer := o.prepares.Handle(ctx, req); !answer.Allowed {
		return refusedBy("prepare-downscale", answer, false)
	}
	return nil
}

// replicasOf are the replicas that an object is to have, nil of a kind that is not
// guarded.
func replicasOf(obj client.Object) (replicas *int32, resource string) {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return o.Spec.Replicas, "statefulsets"
	case *appsv1.Deployment:
		return o.Spec.Replicas, "deployments"
	case *appsv1.ReplicaSet:
		return o.Spec.Replicas, "replicasets"
	default:
		return nil, ""
	}
}

func requestOf(resource string, before, after client.Object) (admission.Request, error) {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: before.GetNamespace(), Name: before.GetName(),
		Resource: metav1.GroupVersionResource{Group: appsv1.GroupName, Version: "v1", Resource: resource},
	}}
	var err error
	if req.OldObject, err = rawOf(before); err != nil {
		return req, err
	}
	req.Object, err = rawOf(after)
	return req, err
}

func rawOf(obj client.Object) (runtime.RawExtension, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encode %s: %w", obj.GetName(), err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}

// refusedBy is the answer of the API server after that of a webhook.
func refusedBy(name string, answer admission.Response, forever bool) error {
	return &RefusedError{Forever: forever, StatusError: apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest, Code: http.StatusBadRequest,
		Message: fmt.Sprintf("admission webhook %q denied the request: %s", name+".zones.spillway.dev", answer.Result.Message),
	}}}
}
