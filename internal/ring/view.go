package ring

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Newer returns the newer of two resource versions, of which either may not be known.
func Newer(a, b string) string {
	if Older(a, b) {
		return b
	}
	return a
}

// IsBehind is true if a view of a kind (what the cache shows) is older than the view from which
// some manager has decided. Both are resource versions; seen is the one that was recorded in
// the status then. That manager may know of writes that this view does not show, so a ring
// reads from the API server before it decides.
func IsBehind(view, seen string) bool { return Older(view, seen) }

// Older is true if the resource version a is older than b. One that is not known, or is none
// ("0"), is older than any that is.
func Older(a, b string) bool {
	if !isVersion(a) || !isVersion(b) {
		return isVersion(b)
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// isVersion is true of what can be compared as a resource version.
func isVersion(text string) bool {
	_, err := resourceversion.CompareResourceVersion(text, "1")
	return err == nil
}
