//go:build identity

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	dexSecret, dexPassword = "the secret of the client", "password"
	// dexHash is of this password, as "htpasswd -bnBC 10" makes it.
	dexHash = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
)

// dex is a real one, with users who have passwords, and one with a group who needs none.
type dex struct{ url, ca, key, secret string }

// program runs another program to the end of the test, once it answers.
func program(t *testing.T, variable, ready string, env []string, args ...string) {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s has to name the program; run make identity-check", variable)
	}
	ctx, stop := context.WithCancel(t.Context())
	out := &testenv.Buffer{}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", path, out)
		}
	})
	testenv.Eventually(t, func(context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", ready)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return c.Close()
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startDex starts one whose tokens last for a while.
func startDex(t *testing.T, tokens string) *dex {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	d := &dex{url: "https://" + at + "/dex", ca: write(t, "ca.crt", string(certificate)), key: write(t, "tls.key", string(key)), secret: write(t, "client-secret", dexSecret+"\n")}
	config := map[string]any{
		"issuer": d.url, "storage": map[string]any{"type": "memory"},
		"web":              map[string]any{"https": at, "tlsCert": d.ca, "tlsKey": d.key},
		"expiry":           map[string]any{"idTokens": tokens},
		"oauth2":           map[string]any{"passwordConnector": "local"},
		"enablePasswordDB": true,
		"staticPasswords": []map[string]any{
			{"email": "anna@example.com", "hash": dexHash, "username": "anna", "userID": "1"},
			{"email": "ben@example.com", "hash": dexHash, "username": "ben", "userID": "2"},
		},
		"connectors": []map[string]any{{"type": "mockCallback", "id": "mock", "name": "Mock"}},
		"staticClients": []map[string]any{
			{"id": "spillway", "name": "Spillway", "secret": dexSecret, "redirectURIs": []string{hostedURL + "/login/callback"}},
			{"id": "proxy", "name": "Proxy", "secret": dexSecret, "redirectURIs": []string{hostedURL + "/oauth2/callback"}},
		},
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	program(t, "DEX", at, nil, "serve", write(t, "dex.yaml", string(raw)))
	return d
}

// flags are those by which the dashboard lets in who logs in there.
func (d *dex) flags(more ...string) []string {
	return append([]string{
		"--oidc-issuer-url", d.url, "--oidc-client-id", "spillway", "--oidc-client-secret-file", d.secret, "--oidc-ca-file", d.ca,
		"--oidc-scopes", "profile,email,groups", "--oidc-username-claim", "email", "--oidc-username-prefix", "oidc:",
		"--oidc-groups-claim", "groups", "--oidc-groups-prefix", "oidc:", "--groups", "oidc:authors",
	}, more...)
}

// token is one that a program gets by the password of a user.
func (d *dex) token(v *visitor, clientID, user string) string {
	v.t.Helper()
	form := url.Values{"grant_type": {"password"}, "scope": {"openid email groups"}, "username": {user}, "password": {dexPassword}}
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, d.url+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(clientID), url.QueryEscape(dexSecret))
	at := v.send(r)
	token := struct {
		IDToken string `json:"id_token"` //nolint:tagliatelle // as OpenID Connect names it
	}{}
	if err := json.Unmarshal([]byte(at.text), &token); err != nil || token.IDToken == "" {
		v.t.Fatalf("no token: %v: %s", err, at.text)
	}
	return token.IDToken
}

// logsIn has a user log in by the form of Dex, from the page that has led there.
func (v *visitor) logsIn(on *page, user, password string) *page {
	v.t.Helper()
	return v.submit(v.link(on, "/auth/local"), url.Values{"login": {user}, "password": {password}})
}

// arrives logs a user in and grants access, as she is asked to.
func (v *visitor) arrives(path, user string) *page {
	v.t.Helper()
	return v.submit(v.logsIn(v.open(hostedURL+path), user, dexPassword), url.Values{"approval": {"approve"}})
}

func (p *page) says(t *testing.T, what string, status int, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if p.status != status || !strings.Contains(p.text, want) {
			t.Errorf("%s: status %d at %s, want %d with %q: %s", what, p.status, p.at, status, want, p.text)
		}
	}
}

// prepared is a cluster with two namespaces: shop of anna and a group, bank of ben.
func prepared(t *testing.T) (admin client.Client, shop, bank string) {
	t.Helper()
	admin, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shop, bank = testenv.Namespace(t), testenv.Namespace(t)
	read := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	steer := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}
	testenv.Grant(t, admin, shop, "oidc:anna@example.com", []rbacv1.PolicyRule{read, steer})
	testenv.Grant(t, admin, bank, "oidc:ben@example.com", []rbacv1.PolicyRule{read})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "authors"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "oidc:authors"}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{shop, bank} {
		testenv.ApplyManifest(t, admin, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	}
	return admin, shop, bank
}

// sees waits until a visitor sees a namespace, and nothing else: the API server reads roles
// with a delay.
func (v *visitor) sees(namespace string) {
	v.t.Helper()
	testenv.Eventually(v.t, func(context.Context) error {
		names, err := v.units()
		if err == nil && (len(names) != 1 || names[0] != namespace+"/web") {
			err = fmt.Errorf("it shows %q", names)
		}
		return err
	})
}

// People log in by the forms of Dex, see and do what they may, and log out; sessions end.
func TestDex(t *testing.T) {
	admin, shop, bank := prepared(t)
	d := startDex(t, "1m")
	a := dashboardAccount(t, admin, "oidc:authors")
	h := startHosted(t, a, d.flags("--steering", "--offer-namespaces", shop+","+bank)...)

	anna := h.visitor()
	anna.logsIn(anna.open(hostedURL+"/past"), "anna@example.com", "wrong").says(t, "a wrong password", http.StatusUnauthorized, "Invalid Email Address and password")
	if status, _ := anna.ask(http.MethodGet, "/assets/style.css", nil); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	testenv.Eventually(t, func(context.Context) error { // until the API server knows the roles, she may see nothing
		anna = h.visitor()
		at := anna.arrives("/past?x=1", "anna@example.com")
		if at.status != http.StatusOK || at.at.String() != hostedURL+"/past?x=1" {
			return fmt.Errorf("she is led to %s: status %d: %s", at.at, at.status, at.text)
		}
		_, err := anna.units() // the page may be shown before all is read
		return err
	})
	anna.open(hostedURL+"/account?find").says(t, "the account", http.StatusOK, "You are oidc:anna@example.com, with no groups", `<a href="/account?show=`+shop+`">`)
	anna.sees(shop)
	ben := h.visitor()
	ben.arrives("/account?show="+bank, "ben@example.com")
	ben.sees(bank)
	h.acts(t, admin, anna, ben, shop, bank)

	t.Run("groups", func(t *testing.T) {
		kilgore := h.visitor()
		at := kilgore.submit(kilgore.link(kilgore.open(hostedURL+"/account"), "/auth/mock"), url.Values{"approval": {"approve"}})
		at.says(t, "the account", http.StatusOK, "You are oidc:kilgore@kilgore.trout, with the groups oidc:authors")
		kilgore.open(hostedURL + "/account?show=" + shop)
		kilgore.sees(shop)
	})
	t.Run("a login that is given up", func(t *testing.T) {
		v := h.visitor()
		at := v.submit(v.logsIn(v.open(hostedURL), "anna@example.com", dexPassword), url.Values{"approval": {"rejected"}})
		t.Logf("status %d at %s", at.status, at.at)
		if strings.HasPrefix(at.at.String(), hostedURL) && at.status == http.StatusOK {
			t.Errorf("she is let in: %s", at.text)
		}
		if at := v.open(hostedURL); !strings.HasPrefix(at.at.String(), d.url) {
			t.Errorf("she is let in: %s", at.text)
		}
	})
	t.Run("logout", func(t *testing.T) {
		anna.submit(anna.open(hostedURL+"/account"), url.Values{}).says(t, "a logout", http.StatusOK, "You are logged out here")
		if _, err := anna.units(); err == nil || !strings.Contains(err.Error(), "status 401") {
			t.Errorf("after the logout: %v", err)
		}
		if at := anna.open(hostedURL + "/"); !strings.HasPrefix(at.at.String(), d.url) {
			t.Errorf("she is led to %s", at.at)
		}
		anna.arrives("/", "anna@example.com")
		anna.gets("/", http.StatusOK, "Deployment")
	})
	for _, request := range a.requests() {
		if !strings.Contains(request, `as "oidc:`) {
			t.Errorf("a request is the dashboard's own: %s", request)
		}
	}
}

// Sessions end by time; who comes again logs in again. A program reads with a token of Dex as
// long as it is good.
func TestDexSessionsEnd(t *testing.T) {
	admin, shop, _ := prepared(t)
	d := startDex(t, "10s")
	h := startHosted(t, dashboardAccount(t, admin), d.flags("--session-lifetime", "8s", "--namespace", shop)...)
	testenv.Eventually(t, func(context.Context) error {
		if at := h.visitor().arrives("/", "anna@example.com"); at.status != http.StatusOK || !strings.HasPrefix(at.at.String(), hostedURL) {
			return fmt.Errorf("status %d at %s: %s", at.status, at.at, at.text)
		}
		return nil
	})
	anna := h.visitor()
	anna.arrives("/", "anna@example.com")
	anna.gets("/", http.StatusOK, "web")
	testenv.Eventually(t, func(context.Context) error {
		if _, err := anna.units(); err == nil || !strings.Contains(err.Error(), "status 401") {
			return fmt.Errorf("her session goes on: %w", err)
		}
		return nil
	})
	anna.arrives("/", "anna@example.com")
	anna.gets("/", http.StatusOK, "web")

	reads := func(token string) *page {
		v := h.visitor()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostedURL+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		return v.send(r)
	}
	reads(d.token(anna, "proxy", "anna@example.com")).says(t, "the token of another client", http.StatusUnauthorized, "not accepted")
	token := d.token(anna, "spillway", "anna@example.com")
	reads(token).says(t, "a program", http.StatusOK, `"units"`, `"web"`)
	testenv.Eventually(t, func(context.Context) error {
		if at := reads(token); at.status != http.StatusUnauthorized || !strings.Contains(at.text, "expired") {
			return fmt.Errorf("status %d: %s", at.status, at.text)
		}
		return nil
	})
}

// oauth2-proxy logs people in at Dex, and names them to the dashboard, which believes no one else.
func TestOAuth2Proxy(t *testing.T) {
	admin, shop, bank := prepared(t)
	for namespace, user := range map[string]string{shop: "anna@example.com", bank: "ben@example.com"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "proxied"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}
		if err := admin.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	d := startDex(t, "1m")
	h := startHosted(t, dashboardAccount(t, admin, "authors"), "--steering", "--groups", "authors", "--proxy-addresses", "127.0.0.1", "--proxy-user-header", "X-Forwarded-Email")
	direct := *h
	h.address = startProxy(t, d, direct.address)

	anna := h.visitor()
	anna.logsIn(anna.open(hostedURL+"/account"), "anna@example.com", "wrong").says(t, "a wrong password", http.StatusUnauthorized, "Invalid Email Address and password")
	at := anna.arrives("/account", "anna@example.com")
	at.says(t, "logged in", http.StatusOK, "You are anna@example.com, with no groups")
	anna.open(hostedURL + "/account?show=" + shop)
	anna.sees(shop)
	ben := h.visitor()
	ben.arrives("/account", "ben@example.com")
	ben.open(hostedURL + "/account?show=" + bank)
	ben.sees(bank)
	h.acts(t, admin, anna, ben, shop, bank)

	kilgore := h.visitor()
	at = kilgore.submit(kilgore.link(kilgore.open(hostedURL+"/account"), "/auth/mock"), url.Values{"approval": {"approve"}})
	at.says(t, "with a group", http.StatusOK, "You are kilgore@kilgore.trout, with the groups authors")

	t.Run("headers of a browser", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostedURL+"/account", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"X-Forwarded-Email", "X-Forwarded-User", "X_Forwarded_Email", "x-forwarded-email"} {
			r.Header[name] = []string{"ben@example.com"}
		}
		r.Header["X-Forwarded-Groups"] = []string{"authors"}
		anna.send(r.Clone(t.Context())).says(t, "of anna", http.StatusOK, "You are anna@example.com, with no groups")
		if at := h.visitor().send(r); strings.Contains(at.text, "You are") {
			t.Errorf("who has not logged in: status %d: %s", at.status, at.text)
		}
	})
	t.Run("not by the proxy", func(t *testing.T) {
		v := direct.visitor()
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		v.Client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, direct.address)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostedURL+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-Email", "anna@example.com")
		v.send(r).says(t, "another address", http.StatusForbidden, "only if they come from the proxy")
	})
	t.Run("a page follows", func(t *testing.T) { follows(t, admin, anna, shop) })
	t.Run("logout", func(t *testing.T) {
		anna.open(hostedURL + "/oauth2/sign_out")
		if at := anna.open(hostedURL + "/"); !strings.HasPrefix(at.at.String(), d.url) {
			t.Errorf("she is led to %s: %s", at.at, at.text)
		}
	})
}

// startProxy starts oauth2-proxy before a dashboard, and returns its address.
func startProxy(t *testing.T, d *dex, upstream string) (at string) {
	t.Helper()
	at = freeAddress(t)
	program(t, "OAUTH2_PROXY", at, []string{"OAUTH2_PROXY_CLIENT_SECRET=" + dexSecret, "OAUTH2_PROXY_COOKIE_SECRET=" + strings.Repeat("x", 32)},
		"--provider=oidc", "--oidc-issuer-url="+d.url, "--client-id=proxy", "--provider-ca-file="+d.ca, "--scope=openid email profile groups",
		"--redirect-url="+hostedURL+"/oauth2/callback", "--email-domain=*", "--code-challenge-method=S256", "--skip-provider-button=true",
		"--pass-user-headers=true", "--pass-host-header=true", "--flush-interval=1s",
		"--upstream=https://"+upstream, "--ssl-upstream-insecure-skip-verify=true",
		"--https-address="+at, "--http-address=", "--tls-cert-file="+d.ca, "--tls-key-file="+d.key)
	return at
}

// follows has a page learn of a change by the proxy.
func follows(t *testing.T, admin client.Client, v *visitor, namespace string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hostedURL+"/live", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := v.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s: %v", answer.StatusCode, lines.Text(), lines.Err())
	}
	testenv.ApplyManifest(t, admin, strings.NewReplacer("metadata: {", "metadata: {namespace: "+namespace+", ", "name: web", "name: further").Replace(waitsForSecret))
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	t.Errorf("it has ended: %v", lines.Err())
}
