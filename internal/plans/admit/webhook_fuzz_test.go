package admit

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// shelf has one OperatorVersion, under every name; nil if it cannot be reached.
type shelf struct {
	client.Reader
	spec *v1beta1.OperatorVersionSpec
}

func (s shelf) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	ov, ok := obj.(*v1beta1.OperatorVersion)
	if s.spec == nil || !ok {
		return errors.New("the API server does not answer")
	}
	ov.Namespace, ov.Name, ov.Spec = key.Namespace, key.Name, *s.spec.DeepCopy()
	return nil
}

// FuzzHandle sends Instances that no API server would let through: the handler never
// panics, and refuses nothing without a known OperatorVersion.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `{"spec":null,"status":null}`, `{"spec":{"operatorVersion":{"name":"app-1"},"parameters":{"NODES":"x","":""}}}`,
		`{"spec":{"operatorVersion":{"name":"app-1"},"planExecution":{"planName":"cleanup","uid":"u"}},"status":{"execution":{"advances":true,"touched":true}}}`,
		`{"metadata":{"annotations":{"kudo.dev/last-applied-instance-state":"{"}},"spec":{"operatorVersion":{"name":"a"}},"status":{"planStatus":{"deploy":{"status":"COMPLETE"}}}}`,
		`{"spec":{"operatorVersion":{"name":"b","namespace":"c"}},"status":{"lastAppliedInstanceSpec":{},"attempted":{"touched":true},"immutableParameters":{"FIXED":""}}}`,
	} {
		f.Add(seed, seed, "UPDATE")
		f.Add(seed, `{}`, "UPDATE")
		f.Add(seed, ``, "CREATE")
	}
	spec := &v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{"deploy": {}}, Parameters: []v1beta1.Parameter{{Name: "NODES", Type: v1beta1.IntegerType}}}
	f.Fuzz(func(t *testing.T, now, before, operation string) {
		if !json.Valid([]byte(now)) || before != "" && !json.Valid([]byte(before)) {
			return // the server has refused it by then
		}
		for _, known := range []*v1beta1.OperatorVersionSpec{nil, spec} {
			a := &webhook{live: shelf{spec: known}}
			res := a.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Operation(operation), Namespace: "shop",
				Object: runtime.RawExtension{Raw: []byte(now)}, OldObject: runtime.RawExtension{Raw: []byte(before)},
			}})
			if known == nil && !res.Allowed && res.Result.Code < 500 {
				t.Errorf("refused: %+v", res.Result)
			}
		}
	})
}
