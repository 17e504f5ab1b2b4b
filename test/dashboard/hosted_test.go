//go:build browser

package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// hosts serves the pages as in a cluster to the end of the test, to who logs in at an issuer.
func (s *story) hosts(at *issuer.Issuer, more ...string) (address string) {
	s.t.Helper()
	secret := filepath.Join(s.t.TempDir(), "client-secret")
	if err := os.WriteFile(secret, []byte(at.Secret), 0o600); err != nil {
		s.t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		s.t.Fatal(err)
	}
	address = "https://localhost:" + port
	ctx, stop := context.WithCancel(s.t.Context())
	out, ended := run(ctx, append([]string{
		"dashboard", "serve", "--steering", "--listen", "127.0.0.1:" + port, "--probes", "127.0.0.1:0", "--url", address,
		"--oidc-issuer-url", at.URL, "--oidc-client-id", at.ClientID, "--oidc-client-secret-file", secret, "--oidc-ca-file", at.CAFile(s.t),
		"--oidc-username-prefix", "-",
	}, more...)...)
	s.t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			s.t.Errorf("exit code %d: %s", code, out)
		}
	})
	s.until(func(context.Context) error {
		if !strings.Contains(out.String(), "listens on") {
			return errors.New(out.String())
		}
		return nil
	})
	return address
}

const waits = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}]}]}
`

// Two people log in to the pages in the cluster. Each sees her namespace; one steers, and the
// other one sees which permission she lacks.
func TestHostedPagesInABrowser(t *testing.T) {
	s := begin(t)
	ofCarla, ofDan := testenv.Namespace(t), testenv.Namespace(t)
	s.apply(fmt.Sprintf(waits, "checkout", ofCarla))
	s.apply(fmt.Sprintf(waits, "ledger", ofDan))
	read := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	steer := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}
	testenv.Grant(t, s.client, ofCarla, "carla", []rbacv1.PolicyRule{read, steer})
	testenv.Grant(t, s.client, ofDan, "dan", []rbacv1.PolicyRule{read})
	s.until(func(ctx context.Context) error { // until the API server knows the roles
		return errors.Join(s.said("checkout", "status", "-n", ofCarla, "--as", "carla"), s.said("ledger", "status", "-n", ofDan, "--as", "dan"))
	})
	at := issuer.New(t, nil)
	offered := []string{"--offer-namespaces", ofCarla + "," + ofDan}
	address := s.hosts(at, offered...)
	check := func(said string, wants []string, not string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not said: %s", want, said)
			}
		}
		if strings.Contains(said, not) {
			t.Errorf("%q is said: %s", not, said)
		}
	}
	at.LogsIn(issuer.Claims{"sub": "carla"})
	said := browser(t, "hosted", address, "/why/deployment/checkout?namespace="+ofCarla, "carla")
	check(said, []string{"You are carla", "Done: deployment/checkout paused.", "You are logged out here", "status 401"}, "ledger")
	web := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: ofCarla, Name: "checkout"}, web); err != nil {
		t.Fatal(err)
	}
	if by := web.Annotations[vocabulary.PausedBy.Native]; !strings.Contains(by, `"carla"`) {
		t.Errorf("paused by %q", by)
	}
	at.LogsIn(issuer.Claims{"sub": "dan"})
	said = browser(t, "hosted", address, "/why/deployment/ledger?namespace="+ofDan, "dan")
	check(said, []string{"You are dan", "Disabled: You may not do it: it takes the permission to patch deployments.apps in namespace " + ofDan, "You are logged out here", "status 401"}, "checkout")
	said = browser(t, "hosted", s.hosts(at, append(offered, "--session-lifetime", "15s")...), "/why/deployment/ledger?namespace="+ofDan, "dan", "ends")
	check(said, []string{"The session has ended."}, "checkout")
}
