package serve

import (
	"context"
	"encoding/json"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// marking gives what the handler allows the mark.
type marking struct{ webhook.Handler }

// Handle answers as the handler does.
func (m marking) Handle(ctx context.Context, req webhook.Request) webhook.Response {
	response := m.Handler.Handle(ctx, req)
	if response.Allowed {
		response.Patches = append(response.Patches, mark(req.Object.Raw))
	}
	return response
}

// unmarked answers a webhook that only validates, and must not answer with a patch.
type unmarked struct{ webhook.Handler }

// Handle answers as the handler does.
func (u unmarked) Handle(ctx context.Context, req webhook.Request) webhook.Response {
	response := u.Handler.Handle(ctx, req)
	response.Patches = nil
	return response
}

// mark adds the mark to an object. What cannot be decoded the API server does not
// send.
func mark(raw []byte) jsonpatch.Operation {
	object := metav1.PartialObjectMetadata{}
	_ = json.Unmarshal(raw, &object)
	if object.Annotations == nil {
		return jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{vocabulary.Admitted: vocabulary.AdmittedYes})
	}
	return jsonpatch.NewOperation("add", "/metadata/annotations/"+strings.ReplaceAll(vocabulary.Admitted, "/", "~1"), vocabulary.AdmittedYes)
}
