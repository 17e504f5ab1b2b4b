package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
)

// releaseTrace is the trace of the release of one of these objects ("Secret db") that is under
// way and had begun by then, empty if there is none. Policies remember no others.
func (h *historian) releaseTrace(ctx context.Context, objects []string, by time.Time) (string, error) {
	own, all := &v1alpha1.ConfigPolicyList{}, &v1alpha1.ClusterConfigPolicyList{}
	if err := h.inNamespace(ctx, own); err != nil {
		return "", err
	}
	if err := h.inNamespace(ctx, all); err != nil {
		return "", err
	}
	is := func(r v1alpha1.ConfigRelease) bool {
		object, _, _ := strings.Cut(r.Object, "@")
		return r.Namespace == h.ref.Namespace && r.StartedAt != nil && !by.Before(r.StartedAt.Add(-sameMoment)) && slices.Contains(objects, object)
	}
	for i := range own.Items {
		s := &own.Items[i].Status
		if k := slices.IndexFunc(s.Releases, is); k >= 0 {
			return identity.Release(own.Items[i].UID, &s.Releases[k]), nil
		}
	}
	for i := range all.Items {
		s := &all.Items[i].Status
		if k := slices.IndexFunc(s.Releases, is); k >= 0 {
			return identity.Release(all.Items[i].UID, &s.Releases[k]), nil
		}
	}
	return "", nil
}

// changedObjects are the objects of "Secret db: password".
func changedObjects(changed []string) []string {
	objects := make([]string, len(changed))
	for i, text := range changed {
		objects[i], _, _ = strings.Cut(text, ": ")
	}
	return objects
}
