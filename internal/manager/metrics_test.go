package manager_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Metrics name namespaces and workloads: only those get them whom the API server knows,
// and whom a role lets get them.
func TestSecureMetricsAreServedToThoseWhoMayGetThem(t *testing.T) {
	c, ns := newClient(t, testenv.Shared()), testenv.Namespace(t)
	o := options(ns)
	o.LeaderElect, o.MetricsSecure, o.MetricsAddress = false, true, address(t)
	stop := run(t, testenv.Shared(), o)
	other, reader := token(t, c, ns, "other"), token(t, c, ns, "reader")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "reader"}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), obj) })
	}
	url := "https://" + o.MetricsAddress + "/metrics"
	testenv.Eventually(t, func(context.Context) error { return answers(url, "", http.StatusUnauthorized) })
	for _, test := range []struct {
		token  string
		status int
	}{{"made-up", http.StatusUnauthorized}, {other, http.StatusForbidden}, {reader, http.StatusOK}, {reader, http.StatusOK}} {
		if err := answers(url, test.token, test.status); err != nil {
			t.Error(err)
		}
	}
	if err := answers(strings.Replace(url, "https", "http", 1), reader, http.StatusOK); err == nil {
		t.Error("they are served by HTTP")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func answers(url, token string, want int) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := insecure().Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want || strings.Contains(string(body), "spillway_") != (want == http.StatusOK) {
		return fmt.Errorf("status %d, want %d: %w", answer.StatusCode, want, err)
	}
	return nil
}

// insecure is a client that trusts whatever certificate is served.
func insecure() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// token is that of a new service account.
func token(t *testing.T, c client.Client, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}
