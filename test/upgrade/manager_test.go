//go:build upgrade

package upgrade_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// asAccount is a kubeconfig with a token of a ServiceAccount, as a kubelet mounts it.
func asAccount(t *testing.T, namespace, account string) string {
	t.Helper()
	clients, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.CopyConfig(testenv.Shared().Config())
	if err := rest.LoadTLSFiles(cfg); err != nil { // the program may see no other file
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "x", Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x", Namespace: namespace}},
		Clusters: map[string]*clientcmdapi.Cluster{"x": {
			Server: cfg.Host, CertificateAuthorityData: cfg.CAData, InsecureSkipTLSVerify: cfg.Insecure,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"x": {Token: token.Status.Token}},
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// process is a manager that runs.
type process struct {
	said *testenv.Buffer
	stop func()
}

// manage runs the manager of a version with the arguments and the permissions that are
// installed, until stop or the end of the test. More arguments follow those.
func (w *world) manage(v version, more ...string) *process {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.system, Name: "spillway"}, d); err != nil {
		w.t.Fatal(err)
	}
	args := append([]string{}, d.Spec.Template.Spec.Containers[0].Args...)
	args = append(append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0"), more...)
	p := &process{said: &testenv.Buffer{}}
	cmd := v.command(w.t, asAccount(w.t, w.system, d.Spec.Template.Spec.ServiceAccountName), args...)
	cmd.Stdout, cmd.Stderr = p.said, p.said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			w.t.Errorf("the manager of %s ended: %v", v.name, err)
		}
		said := p.said.String()
		for line := range strings.Lines(said) {
			if strings.Contains(line, "forbidden") || strings.Contains(line, "panic") {
				w.t.Errorf("the manager of %s says: %s", v.name, line)
			}
		}
		if w.t.Failed() {
			w.t.Logf("the manager of %s: %s", v.name, said[max(0, len(said)-10_000):])
		}
	})
	w.t.Cleanup(p.stop)
	return p
}

// says waits until a manager has said something.
func (w *world) says(p *process, text string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		if said := p.said.String(); !strings.Contains(said, text) {
			return fmt.Errorf("the manager does not say %q but %s", text, said)
		}
		return nil
	})
}
