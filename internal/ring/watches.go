package ring

import "slices"

// Watches is true if a manager that is told these namespaces watches one; it watches all if it is told
// none.
func Watches(namespaces []string, namespace string) bool {
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}
