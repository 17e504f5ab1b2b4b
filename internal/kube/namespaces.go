package kube

// OrAll returns some namespaces, or the empty one, which stands for all, if there are none.
func OrAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{""}
	}
	return namespaces
}
