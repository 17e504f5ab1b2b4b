package manager

import "testing"

// The labels name what a request is for, and no object: they are few, whatever there is in
// the cluster.
func TestResourceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                             "core/v1/pods collection",
		"/api/v1/namespaces/mimir/pods":                            "core/v1/pods collection",
		"/api/v1/namespaces/mimir/pods/ingester-zone-a-0":          "core/v1/pods object",
		"/api/v1/namespaces/mimir/pods/ingester-zone-a-0/eviction": "core/v1/pods object eviction subresource",
		"/api/v1/namespaces/mimir":                                 "core/v1/namespaces object",
		"/apis/apps/v1/namespaces/mimir/statefulsets/a/scale":      "apps/v1/statefulsets object scale subresource",
		"/apis/spillway.dev/v1alpha1/rolloutgroups":                "spillway.dev/v1alpha1/rolloutgroups collection",
		"/apis/apps/v1":                                            "other",
		"/api":                                                     "other",
		"/openapi/v3/apis/apps/v1":                                 "other",
		"/":                                                        "other",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
