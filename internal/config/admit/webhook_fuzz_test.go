package admit

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// broken is an API server that does not answer.
type broken struct {
	client.Reader
	client.Writer
}

var errBroken = errors.New("the API server does not answer")

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

func (broken) Create(context.Context, client.Object, ...client.CreateOption) error { return errBroken }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

// FuzzHandle sends workloads that no API server would let through: whatever they
// are, the answer is no panic and no refusal.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `{"metadata":null}`, `{"spec":{"template":null}}`,
		`{"metadata":{"annotations":{"spillway.dev/update-on-config-change":"true","spillway.dev/extra-configmaps":"a/b/c,,"}}}`,
		`{"metadata":{"annotations":{"wave.pusher.com/update-on-config-change":"true"}},"spec":{"template":{"spec":{"containers":[{"envFrom":[{}]}],"volumes":[{"configMap":{}}]}}}}`,
		`{"spec":{"template":{"spec":{"schedulingGates":[{"name":"spillway.dev/config-missing"}]}}}}`,
		`{"spec":{"template":{"spec":{"schedulerName":"wave.pusher.com/invalid"}}}}`,
		`{"metadata":{"annotations":{"spillway.dev/config-change":"{","spillway.dev/config-status":"[]"}}}`,
	} {
		f.Add(seed, seed, "Deployment", "UPDATE")
		f.Add(seed, `{}`, "StatefulSet", "CREATE")
	}
	f.Add(`{}`, `{}`, "Pod", "CONNECT")
	a := &handler{options: Options{Now: time.Now}, live: broken{}, lists: broken{}, writer: broken{}}
	f.Fuzz(func(t *testing.T, now, before, kind, operation string) {
		if !json.Valid([]byte(now)) || !json.Valid([]byte(before)) {
			return // the server has refused it by then
		}
		res := a.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Operation: admissionv1.Operation(operation), Namespace: "shop",
			Object: runtime.RawExtension{Raw: []byte(now)}, OldObject: runtime.RawExtension{Raw: []byte(before)},
		}})
		if !res.Allowed && res.Result.Code < 500 {
			t.Errorf("refused: %+v", res.Result)
		}
	})
}
