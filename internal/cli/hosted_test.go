package cli_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/forms"
	"github.com/spillway-dev/spillway/internal/lab/testenv/issuer"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// account is the one that an installation gives the dashboard, with what it asks for counted.
type account struct {
	config *rest.Config
	// kubeconfig leads to the API server by way of the counter.
	kubeconfig string

	mu       sync.Mutex
	asked    []string
	watching int
}

// dashboardAccount installs the account, and nothing else of the dashboard.
func dashboardAccount(t *testing.T, admin client.Client, groups ...string) *account {
	t.Helper()
	namespace := testenv.Namespace(t)
	o := manifests.Default(manager.Rings()...)
	o.Namespace, o.Values.Dashboard.Enabled, o.Values.Dashboard.Namespace, o.Values.Dashboard.Groups = namespace, true, namespace, groups
	all, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range testenv.Typed(t, all) {
		switch obj.(type) {
		case *corev1.ServiceAccount, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			if obj.GetLabels()["app.kubernetes.io/component"] != "dashboard" {
				continue
			}
			if err := admin.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), obj) })
		}
	}
	clients, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "spillway-dashboard", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := &account{config: rest.AnonymousClientConfig(testenv.Shared().Config())}
	a.config.BearerToken = token.Status.Token
	counter := httptest.NewTLSServer(a.counted(t)) // without TLS, clients send no token
	t.Cleanup(counter.CloseClientConnections)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: counter.Certificate().Raw}))
	a.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}], users: [{name: u, user: {token: %q}}]}`, counter.URL, authority, token.Status.Token)
	if err := os.WriteFile(a.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// counted passes requests on to the API server and notes them.
func (a *account) counted(t *testing.T) http.Handler {
	t.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(testenv.Shared().Config()))
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(testenv.Shared().Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verb, isWatch := r.Method, r.URL.Query().Get("watch") != ""
		if isWatch {
			verb = "WATCH"
		}
		a.mu.Lock()
		a.asked = append(a.asked, fmt.Sprintf("%s as %q in %q: %s", verb, r.Header.Get("Impersonate-User"), r.Header.Values("Impersonate-Group"), r.URL.Path))
		if isWatch {
			a.watching++
		}
		a.mu.Unlock()
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			if isWatch {
				a.watching--
			}
		}()
		defer func() { _ = recover() }() // the client is gone
		proxy.ServeHTTP(w, r)
	})
}

func (a *account) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.asked...)
}

func (a *account) watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watching
}

const hostedURL = "https://spillway.example.test"

var listening = regexp.MustCompile(`listens on (127\.0\.0\.1:\d+)\.`)

// hosted is a dashboard that runs as in a cluster.
type hosted struct {
	t       *testing.T
	issuer  *issuer.Issuer
	address string
}

func serveHosted(t *testing.T, a *account, args ...string) *hosted {
	t.Helper()
	of := issuer.New(t, nil)
	secret := filepath.Join(t.TempDir(), "client-secret")
	if err := os.WriteFile(secret, []byte(of.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHosted(t, a, append([]string{
		"--oidc-issuer-url", of.URL, "--oidc-client-id", of.ClientID, "--oidc-client-secret-file", secret, "--oidc-ca-file", of.CAFile(t),
		"--oidc-username-prefix", "oidc:", "--oidc-groups-claim", "groups", "--oidc-groups-prefix", "oidc:",
	}, args...)...)
	h.issuer = of
	return h
}

// startHosted runs a dashboard that knows people as the arguments say.
func startHosted(t *testing.T, a *account, args ...string) *hosted {
	t.Helper()
	h := &hosted{t: t}
	out := &testenv.Buffer{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, command.Environment{Args: append([]string{
			"spillway", "dashboard", "serve", "--kubeconfig", a.kubeconfig, "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--url", hostedURL,
		}, args...), Out: out, Err: out, Lookup: os.LookupEnv, Now: time.Now})
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	testenv.Eventually(t, func(context.Context) error {
		found := listening.FindStringSubmatch(out.String())
		if found == nil {
			return fmt.Errorf("no address in %q", out)
		}
		h.address = found[1]
		return nil
	})
	return h
}

// visitor is a browser of a person.
type visitor struct {
	*hosted
	*http.Client
}

// visits logs a person in, and shows her a namespace.
func (h *hosted) visits(user, namespace string, groups ...string) *visitor {
	h.t.Helper()
	v := h.visitor()
	h.issuer.LogsIn(issuer.Claims{"sub": user, "groups": groups})
	v.ask(http.MethodGet, "/account", nil)
	if namespace != "" {
		v.ask(http.MethodGet, "/account?show="+namespace, nil)
	}
	return v
}

// visitor is a browser of which no one has logged in yet.
func (h *hosted) visitor() *visitor {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == strings.TrimPrefix(hostedURL, "https://")+":443" {
			address = h.address
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	v := &visitor{h, &http.Client{Jar: jar, Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	h.t.Cleanup(v.CloseIdleConnections)
	return v
}

// ask asks for a page, or sends a form; where it leads is followed.
func (v *visitor) ask(method, path string, form url.Values) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, hostedURL+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", hostedURL)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, text := v.answer(r) //nolint:bodyclose // it has been read and closed
	return answer.StatusCode, text
}

// gets waits until a page has a status and says something, and returns it: a page may be shown before
// all is read, and so before it is known whether the visitor may see it.
func (v *visitor) gets(path string, want int, says string) (text string) {
	v.t.Helper()
	testenv.Eventually(v.t, func(context.Context) error {
		status, page := v.ask(http.MethodGet, path, nil)
		if text = page; status != want || !strings.Contains(page, says) {
			return fmt.Errorf("%s: status %d, not %d with %q: %s", path, status, want, says, page)
		}
		return nil
	})
	return text
}

// answer is the answer to a request, with all that it says.
func (v *visitor) answer(r *http.Request) (*http.Response, string) {
	v.t.Helper()
	answer, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer, string(text)
}

// units are what the first page says as JSON.
func (v *visitor) units() ([]string, error) {
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, hostedURL+"/", http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := v.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	found := describe.Description{}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("status %d: %s", answer.StatusCode, text)
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, err
	}
	var names []string
	for _, u := range describe.Rolled(found.Units) {
		names = append(names, u.Namespace+"/"+u.Name)
	}
	return names, nil
}

// Two people see what they may see, and no more; one of them may act, and does so as herself;
// what the other one sends all the same, the API server refuses. No request is the dashboard's
// own, and a further viewer costs none.
func TestHostedDashboard(t *testing.T) {
	admin, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shop, bank, third := testenv.Namespace(t), testenv.Namespace(t), testenv.Namespace(t)
	read := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}
	steer := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}
	anna, ben := "anna-"+shop, "ben-"+shop
	testenv.Grant(t, admin, shop, "oidc:"+anna, []rbacv1.PolicyRule{read, steer})
	testenv.Grant(t, admin, bank, "oidc:"+ben, []rbacv1.PolicyRule{read})
	for _, namespace := range []string{shop, bank} {
		testenv.ApplyManifest(t, admin, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	}
	a := dashboardAccount(t, admin)
	h := serveHosted(t, a, "--steering", "--look-idle", "2s")

	h.visits(anna, "").gets("/", http.StatusForbidden, "Name a namespace that you may see")
	ofAnna, ofBen := h.visits(anna, shop), h.visits(ben, bank)
	sees := func(v *visitor, namespace string) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error { // until the API server knows the roles
			names, err := v.units()
			if err == nil && (len(names) != 1 || names[0] != namespace+"/web") {
				err = fmt.Errorf("it shows %q", names)
			}
			return err
		})
	}
	sees(ofAnna, shop)
	sees(ofBen, bank)
	for path, v := range map[string]*visitor{
		"/why/deployment/web?namespace=" + bank: ofAnna, "/past/deployment/web?namespace=" + bank: ofAnna, "/act/pause/deployment/web?namespace=" + bank: ofAnna,
		"/next?namespace=" + shop: ofBen, "/why/deployment/web?namespace=" + shop: ofBen,
	} {
		if status, text := v.ask(http.MethodGet, path, nil); strings.Contains(text, "Secret db") || status == http.StatusOK && !strings.Contains(text, "forbidden") {
			t.Errorf("%s is shown to another: status %d: %s", path, status, text)
		}
	}
	if text := h.visits(anna, bank).gets("/", http.StatusForbidden, ""); strings.Contains(text, "web") {
		t.Errorf("the namespace of another: %s", text)
	}

	t.Run("offered namespaces", func(t *testing.T) {
		testenv.Grant(t, admin, third, "oidc:"+ben, []rbacv1.PolicyRule{read})
		offering := serveHosted(t, a, "--offer-namespaces", strings.Join([]string{shop, bank, third}, ","))
		offering.visits(anna, "").gets("/", http.StatusOK, "namespace "+shop)
		testenv.Eventually(t, func(context.Context) error { // until the API server knows the role
			status, text := offering.visits(ben, "").ask(http.MethodGet, "/", nil)
			if status != http.StatusForbidden || !strings.Contains(text, "Choose a namespace that you may see") ||
				!strings.Contains(text, "/account?show="+bank) || !strings.Contains(text, "/account?show="+third) || strings.Contains(text, "/account?show="+shop) {
				return fmt.Errorf("who may see two: status %d: %s", status, text)
			}
			return nil
		})
	})
	t.Run("acting", func(t *testing.T) { h.acts(t, admin, ofAnna, ofBen, shop, bank) })

	t.Run("a further viewer", func(t *testing.T) {
		sees(h.visits(anna, shop), shop) // until all is read
		before := a.requests()
		for range 5 {
			further := h.visits(anna, shop)
			for _, path := range []string{"/", "/?all", "/past", "/"} {
				if status, text := further.ask(http.MethodGet, path, nil); status != http.StatusOK {
					t.Errorf("status %d: %s", status, text)
				}
			}
		}
		if more := a.requests()[len(before):]; len(more) > 0 {
			t.Errorf("5 further viewers cost %q", more)
		}
	})
	t.Run("what a user costs", func(t *testing.T) { h.costs(t, a, admin, bank) })
	for _, request := range a.requests() {
		if !strings.Contains(request, `as "oidc:`) || !strings.Contains(request, "in []") {
			t.Errorf("a request is the dashboard's own, or has a group: %s", request)
		}
	}
	testenv.Eventually(t, func(context.Context) error {
		if open := a.watches(); open != 0 {
			return fmt.Errorf("%d watches are open although no page is open", open)
		}
		return nil
	})
}

// costs counts what the pages of one more user cost. Those of the look cost nothing once it is
// open.
func (h *hosted) costs(t *testing.T, a *account, admin client.Client, namespace string) {
	t.Helper()
	carl := "carl-" + namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "carl"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "oidc:" + carl}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	may, err := kubernetes.NewForConfig(testenv.Shared().ConfigAs("oidc:" + carl))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { // until the API server knows the role
		_, err := may.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	v := h.visits(carl, "")
	object := "deployment/web?namespace=" + namespace
	for _, path := range []string{"/account?show=" + namespace, "/", "/past", "/?all", "/why/" + object, "/why/" + object, "/past/" + object, "/next?namespace=" + namespace, "/act/pause/" + object} {
		before := len(a.requests())
		if status, text := v.ask(http.MethodGet, path, nil); status != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
		if _, err := v.units(); err != nil { // the page may be shown before all is read
			t.Errorf("%s: %v", path, err)
		}
		of := map[string]int{}
		for _, request := range a.requests()[before:] {
			if !strings.Contains(request, carl) { // a watch of another look that goes on
				continue
			}
			verb, at, _ := strings.Cut(request, " ")
			_, at, _ = strings.Cut(at, ": ")
			switch {
			case !strings.Contains(at, "/namespaces/") && (strings.HasSuffix(at, "/v1") || strings.HasSuffix(at, "beta1") || strings.HasSuffix(at, "alpha1") || at == "/api" || at == "/apis" || at == "/version"):
				verb = "discovery"
			case verb == http.MethodGet:
				verb = "read"
			}
			of[verb]++
		}
		t.Logf("%s: %v", strings.ReplaceAll(path, namespace, "N"), of)
		if (path == "/" || path == "/past" || path == "/?all") && len(of) > 0 {
			t.Errorf("%s costs %v", path, of)
		}
	}
}

// acts has one person act, and another one try.
func (h *hosted) acts(t *testing.T, admin client.Client, may, mayNot *visitor, hers, others string) {
	t.Helper()
	pausedBy := func(namespace string) string {
		d := &appsv1.Deployment{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, d); err != nil {
			t.Fatal(err)
		}
		return d.Annotations[vocabulary.PausedBy.Native]
	}
	pause := "/act/pause/deployment/web?namespace="
	testenv.Eventually(t, func(context.Context) error { // controllers write there as well
		_, text := may.ask(http.MethodGet, pause+hers, nil)
		if status, text := may.ask(http.MethodPost, pause+hers, forms.Of(t, text)); status != http.StatusOK || !strings.Contains(text, "Done: deployment/web paused") {
			return fmt.Errorf("status %d: %s", status, text)
		}
		return nil
	})
	if by := pausedBy(hers); !strings.Contains(by, "anna") || !strings.Contains(by, "incident 42") {
		t.Errorf("it is recorded as done by %q", by)
	}
	testenv.Eventually(t, func(context.Context) error {
		_, text := mayNot.ask(http.MethodGet, pause+others, nil)
		if !strings.Contains(text, "it takes the permission to patch deployments.apps in namespace "+others) || !strings.Contains(text, "disabled") {
			t.Errorf("the page does not say what lacks: %s", text)
		}
		status, text := mayNot.ask(http.MethodPost, pause+others, forms.Of(t, text))
		if status != http.StatusForbidden || !strings.Contains(text, "cannot patch resource") {
			return fmt.Errorf("status %d: %s", status, text)
		}
		return nil
	})
	if by := pausedBy(others); by != "" {
		t.Errorf("it was done all the same: %s", by)
	}
}

// Unless an installation says otherwise, nothing can be done on the pages.
func TestHostedDashboardIsReadOnly(t *testing.T) {
	admin, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := testenv.Namespace(t)
	testenv.Grant(t, admin, namespace, "oidc:"+namespace, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
	testenv.ApplyManifest(t, admin, strings.Replace(waitsForSecret, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	h := serveHosted(t, dashboardAccount(t, admin), "--look-lifetime", "3s")
	v := h.visits(namespace, namespace)
	testenv.Eventually(t, func(context.Context) error {
		_, err := v.units()
		return err
	})
	if _, text := v.ask(http.MethodGet, "/why/deployment/web?namespace="+namespace, nil); strings.Contains(text, "/act/") {
		t.Errorf("something can be done: %s", text)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if status, text := v.ask(method, "/act/pause/deployment/web?namespace="+namespace, url.Values{"version": {"1"}, "reason": {"x"}}); status == http.StatusOK || !strings.Contains(text, "read-only") {
			t.Errorf("%s: status %d: %s", method, status, text)
		}
	}

	// What is withdrawn is not shown for longer than a look lives.
	if err := admin.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager"}}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		names, err := v.units()
		if err == nil {
			return fmt.Errorf("it still shows %q", names)
		}
		if !strings.Contains(err.Error(), "status 403") {
			t.Error(err)
		}
		return nil
	})
}

// The account may impersonate users, and the groups that are named, and do nothing else.
func TestDashboardAccount(t *testing.T) {
	admin, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := dashboardAccount(t, admin, "oidc:ops")
	as := func(user string, groups ...string) *kubernetes.Clientset {
		config := rest.CopyConfig(a.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	whoami := func(c *kubernetes.Clientset) error {
		_, err := c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}
	testenv.Eventually(t, func(context.Context) error { return whoami(as("oidc:anna", "oidc:ops")) })
	for name, refused := range map[string]func() error{
		"another group":    func() error { return whoami(as("oidc:anna", "oidc:others")) },
		"administrators":   func() error { return whoami(as("oidc:anna", "system:masters")) },
		"a ServiceAccount": func() error { return whoami(as("system:serviceaccount:kube-system:default")) },
		"its own reads": func() error {
			_, err := as("").CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"its own reads of web": func() error {
			_, err := as("").AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a user without rights": func() error {
			_, err := as("oidc:anna").CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		if err := refused(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
