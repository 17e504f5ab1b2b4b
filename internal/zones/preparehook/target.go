package preparehook

import (
	"net"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// DefaultDomain is the domain under which Services have names.
const DefaultDomain = "cluster.local."

// Endpoint is where the Pods of a StatefulSet are called.
type Endpoint struct {
	// URL is all but the host, of which the port counts.
	URL url.URL
	// Service is that by which the Pods have names.
	Service string
}

// EndpointOf is where Pods are asked to prepare; missing names what it lacks, empty
// if nothing.
func EndpointOf(set *appsv1.StatefulSet) (e Endpoint, missing string) {
	scheme, port := vocabulary.PrepareDownscaleScheme.Get(set.Annotations), vocabulary.PrepareDownscalePort.Get(set.Annotations)
	path, query, _ := strings.Cut(vocabulary.PrepareDownscalePath.Get(set.Annotations), "?")
	if scheme == "" {
		scheme = "http"
	}
	e = Endpoint{Service: set.Spec.ServiceName, URL: url.URL{Scheme: scheme, Host: ":" + port, Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query}}
	_, speaks, _ := vocabulary.PrepareDownscale.Lookup(set.Labels)
	switch {
	case port == "":
		missing = "the " + vocabulary.PrepareDownscalePort.In(speaks) + " annotation is not set or empty."
	case path == "":
		missing = "the " + vocabulary.PrepareDownscalePath.In(speaks) + " annotation is not set or empty."
	case e.Service == "":
		missing = "the serviceName is not set or empty."
	case scheme != "http" && scheme != "https":
		missing = "the " + vocabulary.PrepareDownscaleScheme.Native + " annotation is " + message.Quote(scheme) + ` and must be "http" or "https".`
	}
	return e, missing
}

// Targets are where Pods are called.
func (e Endpoint) Targets(namespace, domain string, pods []corev1.Pod) []Target {
	targets := make([]Target, len(pods))
	for i := range pods {
		u := e.URL
		u.Host = strings.Join([]string{pods[i].Name, e.Service, namespace, "svc", domain}, ".")
		if port := e.URL.Port(); port != "" {
			u.Host = net.JoinHostPort(u.Host, port)
		}
		targets[i] = Target{Pod: pods[i].Name, URL: u.String(), IP: pods[i].Status.PodIP}
	}
	return targets
}

// Leaving are the Pods that go when a StatefulSet goes from so many replicas to
// fewer. Only those are called that exist, have been started, and stay so far: the
// others have no process to listen; see [Unprepared].
func Leaving(set *appsv1.StatefulSet, pods []corev1.Pod, from, to int32) []corev1.Pod {
	first := replica.FirstOrdinal(set)
	var gone []corev1.Pod
	for i := range pods {
		n := replica.Ordinal(set.Name, pods[i].Name)
		if n >= first+int(to) && n < first+int(from) && CanListen(&pods[i]) {
			gone = append(gone, pods[i])
		}
	}
	return gone
}

// CanListen is true of a Pod in which a process may listen.
func CanListen(p *corev1.Pod) bool {
	switch {
	case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
		return false
	default:
		return p.Status.Phase == corev1.PodRunning || p.Status.PodIP != ""
	}
}
