package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlainError says in one line why a command could not do its work, and what to do about it,
// where the libraries say it in words of their own. Other errors stay as they are.
func PlainError(err error) error {
	for _, plain := range []func(error) string{interrupted, contradiction, noCredentials, unauthorized, forbidden, denied, notInstalled, untrusted, unreachable, unavailable, strange} {
		if text := plain(err); text != "" {
			return &plainError{text: text, err: err}
		}
	}
	return err
}

type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

// Unwrap returns the error as the libraries gave it.
func (e *plainError) Unwrap() error { return e.err }

func interrupted(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return ""
}

// exclusive is how the library says that flags exclude one another.
var exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(\S+) (\S+)`)

func contradiction(err error) string {
	m := exclusive.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	return fmt.Sprintf("--%s and --%s contradict each other; leave one out", m[1], strings.TrimSuffix(m[2], "]"))
}

// unauthorized is about credentials. How to log in depends on how the kubeconfig gets
// them, so only the command that tells whether it worked is named.
func unauthorized(err error) string {
	if !apierrors.IsUnauthorized(err) {
		return ""
	}
	return `the API server does not accept the credentials of the kubeconfig: its token or certificate may have expired; log in again, and try with "kubectl auth whoami"`
}

// The ways in which the library says that a program of the kubeconfig gives no credentials.
var (
	pluginMissing = regexp.MustCompile(`getting credentials: exec: executable (\S+) not found`)
	pluginFailed  = regexp.MustCompile(`getting credentials: exec: executable (\S+) failed with exit code (\d+)`)
)

// noCredentials is about a program that the kubeconfig names to get credentials. What it says
// itself is on standard error already.
func noCredentials(err error) string {
	text := err.Error()
	if m := pluginFailed.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf(`%s, which the kubeconfig names to get credentials, failed with exit code %s: log in again, and try with "kubectl auth whoami"`, m[1], m[2])
	}
	m := pluginMissing.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	hint := "install it"
	if paragraphs := strings.Split(strings.TrimSpace(text), "\n\n"); len(paragraphs) > 3 { // the first three are the library's
		hint = strings.Join(strings.Fields(strings.Join(paragraphs[3:], " ")), " ")
	}
	return fmt.Sprintf("%s, which the kubeconfig names to get credentials, not found: %s", m[1], hint)
}

// refused is what the API server says of a request that is not permitted.
var refused = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`)

// forbidden keeps what the command says itself, such as what it wanted to do.
func forbidden(err error) string {
	var status *apierrors.StatusError
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return ""
	}
	m := refused.FindStringSubmatch(status.Error())
	if m == nil { // a webhook or a policy, see denied
		return ""
	}
	return strings.Replace(err.Error(), status.Error(), notPermitted(m), 1)
}

var clusterWide = []string{"nodes", "namespaces", "customresourcedefinitions", "clusterroles", "clusterrolebindings"}

// notPermitted says who may not do what, and what to ask for.
func notPermitted(m []string) string {
	user, verb, resource, where := m[1], m[2], m[3], "in namespace "+m[5]
	if m[4] != "" {
		resource += "." + m[4]
	}
	advice := "ask for a Role that permits it"
	switch {
	case m[5] == "" && (slices.Contains(clusterWide, m[3]) || (verb != "list" && verb != "watch")):
		where, advice = "in the cluster", "ask for a ClusterRole that permits it"
	case m[5] == "":
		where, advice = "in all namespaces", "name a namespace with -n, or ask for a ClusterRole that permits it"
	}
	return fmt.Sprintf("user %s is not permitted to %s %s %s: %s", user, verb, resource, where, advice)
}

func notInstalled(err error) string {
	const action = `install it with "spillway install", or with what it belongs to`
	var (
		kind     *apimeta.NoKindMatchError
		resource *apimeta.NoResourceMatchError
	)
	switch {
	case errors.As(err, &kind):
		return fmt.Sprintf("kind %s is not installed on the cluster: %s", kind.GroupKind, action)
	case errors.As(err, &resource):
		return fmt.Sprintf("API %s is not installed on the cluster: %s", resource.PartialResource.GroupVersion(), action)
	default:
		return ""
	}
}

func untrusted(err error) string {
	server := serverOf(err)
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("API server %s has a certificate of an unknown authority: name the right one with --certificate-authority, or update the kubeconfig", server)
	case errors.As(err, &hostname):
		return fmt.Sprintf("API server %s has a certificate for another name (%s): name that with --tls-server-name, or update the kubeconfig", server, strings.Join(namesOf(hostname.Certificate), ", "))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("API server %s has a certificate that is not valid now (until %s): check the clock, or renew the certificate", server, invalid.Cert.NotAfter.Format("2006-01-02"))
	default:
		return ""
	}
}

func namesOf(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return names
}

func unreachable(err error) string {
	server := serverOf(err)
	if server == "" {
		return ""
	}
	var (
		dns     *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("API server %s refuses connections: start it, or choose another cluster with --context or --kubeconfig", server)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("API server %s not found: there is no host %s; check the address in the kubeconfig, and the network", server, dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("API server %s not found: the name server does not answer; check the network", server)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("API server %s did not answer in time: check the network, or wait longer with --request-timeout", server)
	default:
		return ""
	}
}

// strange is about something that answers, and is no API server.
func strange(err error) string {
	var (
		server = serverOf(err)
		plain  tls.RecordHeaderError
		status *apierrors.StatusError
	)
	switch {
	case errors.As(err, &plain):
		return fmt.Sprintf("API server %s does not speak TLS: check the port, or name it with http:// in --server or in the kubeconfig", server)
	case server != "" && strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Sprintf("what answers at %s is not an API server: check the address and the port", server)
	case server != "" && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "server closed idle connection")):
		return fmt.Sprintf("API server %s closed the connection: check the address and the port, or try again", server)
	case errors.As(err, &status) && says(status, "HTTP request to an HTTPS server"):
		return "the API server speaks TLS: name it with https:// in --server or in the kubeconfig"
	case strings.Contains(err.Error(), "unable to load root certificates"):
		return "the certificate authority of the kubeconfig is not a certificate in PEM form: correct certificate-authority-data, or name a file with --certificate-authority"
	case strings.Contains(err.Error(), "invalid character '<'"), // a page instead of an answer
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return "what answers at the address is not an API server: check --server, or the server of the kubeconfig; a proxy may ask to log in"
	default:
		return ""
	}
}

// says is true if an answer that is no object of the API has a text: the client keeps it.
func says(status *apierrors.StatusError, text string) bool {
	details := status.Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return strings.Contains(c.Message, text) })
}

func unavailable(err error) string {
	var status *apierrors.StatusError
	switch {
	case apierrors.IsTooManyRequests(err):
		return "the API server has too many requests to answer: try again"
	case errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError:
		return fmt.Sprintf("the API server cannot answer now (%s): it may be starting, or a proxy before it cannot reach it; try again", status.Error())
	default:
		return ""
	}
}

// serverOf is the address that was asked, "" if the error is not of the network.
func serverOf(err error) string {
	var asked *url.Error
	if !errors.As(err, &asked) {
		return ""
	}
	at, err := url.Parse(asked.URL)
	if err != nil {
		return asked.URL
	}
	return at.Scheme + "://" + at.Host
}

// denial is how the API server passes on what a policy or a webhook of Spillway says. Those of
// others keep their names, by which a user finds whom to ask.
var denial = regexp.MustCompile(`(?s)^(?:[^']* is forbidden: ValidatingAdmissionPolicy '(?:[^']+\.)?spillway\.dev' with binding '[^']*' denied request|admission webhook "(?:[^"]+\.)?spillway\.dev" denied the request): (.+)$`)

// denied keeps what the command says itself, and the sentence of Spillway's own admission, which
// says what to do.
func denied(err error) string {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return ""
	}
	m := denial.FindStringSubmatch(status.Error())
	if m == nil {
		return ""
	}
	return strings.Replace(err.Error(), status.Error(), m[1], 1)
}
