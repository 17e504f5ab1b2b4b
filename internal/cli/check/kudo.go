package check

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	kudoRuns   = "KUDO runs the plans of Instances, or its webhook still denies every change of them"
	kudoAction = "stop it and delete mutatingwebhookconfiguration/" + vocabulary.KUDOWebhook + ", or leave plans out of --rings"
)

// WithoutKUDO is an error if two managers would run the plans of Instances.
func WithoutKUDO(ctx context.Context, reader client.Reader, rings []string) error {
	if slices.Contains(rings, manager.RingPlans) && kudoIsInstalled(ctx, reader) {
		return errors.New("nothing was installed: " + kudoRuns + "; " + kudoAction)
	}
	return nil
}

// kudoIsInstalled is true if its webhook is, as far as that may be seen.
func kudoIsInstalled(ctx context.Context, reader client.Reader) bool {
	webhook := &metav1.PartialObjectMetadata{}
	webhook.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
	return reader.Get(ctx, client.ObjectKey{Name: vocabulary.KUDOWebhook}, webhook) == nil
}
