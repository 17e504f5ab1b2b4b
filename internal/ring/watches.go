package ring

import "slices"

// Watches reports whether a manager of these namespaces watches one. With none it watches all.
func Watches(namespaces []string, namespace string) bool {
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}
