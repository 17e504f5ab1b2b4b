package guard

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/notice"
)

// endpoint is where the Pods of a StatefulSet are told that they go.
type endpoint struct{ scheme, port, path, service string }

// endpointOf is the endpoint; missing names what it lacks, empty if nothing.
func endpointOf(set *appsv1.StatefulSet) (e endpoint, missing string) {
	e = endpoint{
		scheme: vocabulary.PrepareDownscaleScheme.Get(set.Annotations), port: vocabulary.PrepareDownscalePort.Get(set.Annotations),
		path: vocabulary.PrepareDownscalePath.Get(set.Annotations), service: set.Spec.ServiceName,
	}
	if e.scheme == "" {
		e.scheme = "http"
	}
	speaks := dialect(set)
	switch {
	case e.port == "":
		missing = "the " + vocabulary.PrepareDownscalePort.In(speaks) + " annotation is not set or empty."
	case e.path == "":
		missing = "the " + vocabulary.PrepareDownscalePath.In(speaks) + " annotation is not set or empty."
	case e.service == "":
		missing = "the serviceName is not set or empty."
	case e.scheme != "http" && e.scheme != "https":
		missing = "the " + vocabulary.PrepareDownscaleScheme.Native + " annotation is " + strconv.Quote(e.scheme) + ` and has to be "http" or "https".`
	}
	return e, missing
}

// dialect is the name under which a StatefulSet asks for preparation.
func dialect(set *appsv1.StatefulSet) string {
	_, name, _ := vocabulary.PrepareDownscale.Lookup(set.Labels)
	return name
}

// leaving are the Pods that go when a StatefulSet goes from so many replicas to
// fewer. Only those are told that exist, have been started, and stay so far: the
// others have nobody to listen, and nothing to lose.
func leaving(set *appsv1.StatefulSet, pods []corev1.Pod, from, to int32) []corev1.Pod {
	first := firstOrdinal(set)
	var gone []corev1.Pod
	for i := range pods {
		p := &pods[i]
		n := ordinal(set.Name, p.Name)
		if n >= first+int(to) && n < first+int(from) && hasStarted(p) && p.DeletionTimestamp == nil {
			gone = append(gone, *p)
		}
	}
	return gone
}

// hasStarted is true of a Pod in which somebody may listen.
func hasStarted(p *corev1.Pod) bool {
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return false
	case corev1.PodRunning:
		return true
	default:
		return p.Status.PodIP != ""
	}
}

// targets are where Pods are told.
func (e endpoint) targets(namespace, domain string, pods []corev1.Pod) []notice.Target {
	targets := make([]notice.Target, len(pods))
	for i := range pods {
		host := strings.Join([]string{pods[i].Name, e.service, namespace, "svc", domain}, ".")
		u := url.URL{Scheme: e.scheme, Host: net.JoinHostPort(host, e.port)}
		path, query, _ := strings.Cut(e.path, "?")
		u.Path, u.RawQuery = "/"+strings.TrimPrefix(path, "/"), query
		targets[i] = notice.Target{Pod: pods[i].Name, URL: u.String(), IP: pods[i].Status.PodIP}
	}
	return targets
}
