package testenv

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigHash is the hash of the config with which a workload was rolled last, or with which it ran when it was
// seen first; empty if there is none. The template is that of its Pods.
func ConfigHash(workload, template metav1.Object) string {
	a := template.GetAnnotations()
	baseline := workload.GetAnnotations()["spillway.dev/config-baseline"]
	return cmp.Or(a["spillway.dev/config-hash"], a["wave.pusher.com/config-hash"], baseline[strings.LastIndex(baseline, ":")+1:])
}
