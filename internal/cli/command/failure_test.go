package command_test

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
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// TestPlain has the failures that no test can bring about on a machine of its own. The
// others are in the script of mistakes of connections.
func TestPlain(t *testing.T) {
	const server = "https://api.example:6443"
	asked := func(err error) error {
		return fmt.Errorf("list Pods: %w", &url.Error{Op: "Get", URL: server + "/api", Err: err})
	}
	forbidden := func(message string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(message))
	}
	webhook := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}}
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no host":         {asked(&net.DNSError{Name: "api.example", IsNotFound: true}), "API server " + server + " not found: there is no host api.example; check the address in the kubeconfig, and the network"},
		"no name server":  {asked(&net.DNSError{Name: "api.example", IsTimeout: true}), "API server " + server + " not found: the name server does not answer; check the network"},
		"too slow":        {asked(os.ErrDeadlineExceeded), "API server " + server + " did not answer in time: check the network, or wait longer with --request-timeout"},
		"another name":    {asked(x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a", "b"}}, Host: "c"}), "API server " + server + " has a certificate for another name (a, b): name that with --tls-server-name, or update the kubeconfig"},
		"no longer valid": {asked(x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotAfter: time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)}}), "API server " + server + " has a certificate that is not valid now (until 2020-01-02): check the clock, or renew the certificate"},
		"everywhere":      {forbidden(`User "u" cannot list resource "pods" in API group "" at the cluster scope`), "user u is not permitted to list pods in all namespaces: name a namespace with -n, or ask for a ClusterRole that permits it"},
		"no kind":         {&apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spillway.dev", Kind: "RolloutGroup"}}, `kind RolloutGroup.spillway.dev is not installed on the cluster: install it with "spillway install", or with what it belongs to`},
		"our policy":      {fmt.Errorf("change instance/web: %w", forbidden("ValidatingAdmissionPolicy 'plans.spillway.dev' with binding 'plans.spillway.dev' denied request: plan backup is running: wait")), "change instance/web: plan backup is running: wait"},
		"our webhook":     {fmt.Errorf("change instance/web: %w", webhook(`admission webhook "instances.plans.spillway.dev" denied the request: SIZE: is required; set it`)), "change instance/web: SIZE: is required; set it"},
		"hung up":         {asked(io.EOF), "API server " + server + " closed the connection: check the address and the port, or try again"},
		"no TLS":          {asked(tls.RecordHeaderError{}), "API server " + server + " does not speak TLS: check the port, or name it with http:// in --server or in the kubeconfig"},
		"starting":        {apierrors.NewServiceUnavailable("etcd is down"), "the API server cannot answer now (etcd is down): it may be starting, or a proxy before it cannot reach it; try again"},
		"too many":        {apierrors.NewTooManyRequests("slow down", 1), "the API server has too many requests to answer: try again"},
		"a page":          {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "<html>", 0, true), "what answers at the address is not an API server: check --server, or the server of the kubeconfig; a proxy may ask to log in"},
		"no plugin":       {asked(errors.New("getting credentials: exec: executable cloud not found\n\na\n\nb\n\nInstall cloud.\nThen log in.")), "cloud, which the kubeconfig names to get credentials, not found: Install cloud. Then log in."},
		"interrupted":     {fmt.Errorf("read: %w", context.Canceled), "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := command.PlainError(test.err)
			if got.Error() != test.want || strings.Contains(got.Error(), "\n") {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !errors.Is(got, test.err) {
				t.Error("the error itself is lost")
			}
		})
	}
	for _, err := range []error{
		errors.New("x"), asked(errors.New("broken")),
		webhook(`admission webhook "check.example.com" denied the request: no`),
		forbidden("ValidatingAdmissionPolicy 'notspillway.dev' with binding 'b' denied request: no"),
	} {
		if got := command.PlainError(err); !errors.Is(got, err) || got.Error() != err.Error() {
			t.Errorf("got %v, want it as it was: %v", got, err)
		}
	}
}
