package manifests

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The names by which the manager and what it needs are installed.
const (
	name      = "spillway"
	installer = "spillway-install"
)

// SelectInstalled finds everything that was installed for the manager that runs in a
// namespace, and its dashboard, by the command, by Helm or by any other tool.
func SelectInstalled(namespace string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": namespace}
}

// IsInstalled reports whether an object was installed for the manager that runs in a namespace.
func IsInstalled(obj metav1.Object, namespace string) bool {
	return labels.SelectorFromSet(SelectInstalled(namespace)).Matches(labels.Set(obj.GetLabels()))
}

// InstalledLabels are those of everything that the command installs for the manager that
// runs in a namespace.
func InstalledLabels(namespace string) map[string]string {
	labels := ManagerLabels()
	labels["app.kubernetes.io/managed-by"] = installer
	labels["app.kubernetes.io/instance"] = namespace
	return labels
}

// InstalledDashboardLabels are those of all objects of the dashboard that the command installs
// for the manager that runs in a namespace.
func InstalledDashboardLabels(namespace string) map[string]string {
	labels := InstalledLabels(namespace)
	labels["app.kubernetes.io/component"] = "dashboard"
	return labels
}

// ManagerLabels find the manager's Deployment and Pods.
func ManagerLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": "manager"}
}
