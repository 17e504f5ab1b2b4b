package certificate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// A Secret that is malformed, of other hosts, expired, empty or gone is put right,
// while the manager runs and when it starts. What is not ours in it stays.
func TestSecretsArePutRight(t *testing.T) {
	now := time.Now()
	of := func(hosts ...string) map[string][]byte {
		data, err := certificate.MaterialDue(now.Add(time.Hour), now.Add(time.Hour), hosts)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	expired, err := certificate.MaterialDue(now.Add(-certificate.LeafLife), now.Add(time.Hour), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"malformed":      {certificate.KeyLeaf: []byte("x"), certificate.KeyLeafKey: []byte("y"), certificate.KeyBundle: []byte("z")},
		"empty":          nil,
		"of other hosts": of("rollout-operator.mimir.svc"),
		"expired":        expired,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fail, labels)
			w.createSecret(data)
			w.changeSecret(func(s *corev1.Secret) { s.Labels = map[string]string{"example.test/mine": "kept"} })
			w.serve(testenv.Shared().Config())
			first := w.servesOther(nil)
			w.webhooks.WaitServed(t)

			w.changeSecret(func(s *corev1.Secret) { s.Data = data })
			second := w.servesOther(first)
			w.webhooks.WaitServed(t)
			if err := second.VerifyHostname("127.0.0.1"); err != nil {
				t.Error(err)
			}
			if s, err := w.secret(); err != nil || s.Labels["example.test/mine"] != "kept" {
				t.Errorf("labels %v: %v", s.Labels, err)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		w := newWorld(t, fail, labels)
		w.serve(testenv.Shared().Config())
		first := w.servesOther(nil)
		s, err := w.secret()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.client.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w.servesOther(first)
		w.webhooks.WaitServed(t)
	})
}

// Of two replicas that write, one gets a conflict, and changes nothing.
func TestPreconditionsOfTheSecret(t *testing.T) {
	w := newWorld(t, fail, labels)
	o := w.webhooks.Options
	if err := certificate.KeepMaterial(t.Context(), w.client, nil, o); err != nil {
		t.Fatal(err)
	}
	seen, err := w.secret()
	if err != nil {
		t.Fatal(err)
	}
	w.changeSecret(func(s *corev1.Secret) {
		s.Data = map[string][]byte{certificate.KeyLeaf: []byte("other"), certificate.KeyLeafKey: []byte("other")}
	})
	for _, secret := range []*corev1.Secret{nil, seen} {
		if err := certificate.KeepMaterial(t.Context(), w.client, secret, o); !certificate.IsConflict(err) {
			t.Errorf("the write was not refused: %v", err)
		}
	}
	if s, err := w.secret(); err != nil || string(s.Data[certificate.KeyLeaf]) != "other" {
		t.Errorf("the write did something: %v", err)
	}
}

// Once all is right nothing is written, and nothing is asked, however often
// something happens that does not matter.
func TestQuiet(t *testing.T) {
	w := newWorld(t, fail, labels)
	inj := fault.New()
	_, _ = w.serve(inj.Wrap(testenv.Shared().Config()), everywhere)
	w.webhooks.WaitServed(t)
	w.user(w.namespace+"-late", w.asks())
	w.injected(w.namespace + "-late")
	w.webhooks.WaitConfirmed(t, w.namespace+"-late")
	inj.Reset()
	for range 5 {
		w.touch()
	}
	w.user(w.namespace+"-other", map[string]string{"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": "other"})
	w.user(w.namespace+"-proof", w.asks()) // proves that all before it was seen
	w.injected(w.namespace + "-proof")
	for _, r := range inj.Requests() {
		if r.Resource != "leases" && r.Verb != "watch" && r.Name != w.namespace+"-proof" {
			t.Errorf("asked for %+v", r)
		}
	}
}

// Files are served as they are, and again when they change; what is wrong with
// them keeps the replica from being ready, or what was right is served on.
func TestFiles(t *testing.T) {
	w := newWorld(t, fail, labels)
	dir := t.TempDir()
	probes, _ := w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.Source, o.CertDir = admission.Files, dir })
	w.fill(dir, "other.example.test")
	if ready(probes) == nil {
		t.Error("it is ready with a certificate of another host")
	}
	w.fill(dir, "127.0.0.1")
	w.webhooks.WaitServed(t) // the CA of the folder was injected
	first, err := w.served()
	if err != nil {
		t.Fatal(err)
	}
	w.fill(dir, "127.0.0.1")
	w.eventually(func() error {
		if now, err := w.served(); err != nil || now.Equal(first) {
			return fmt.Errorf("it serves the former certificate: %w", err)
		}
		return nil
	})
	second, err := w.served()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, certificate.KeyLeaf), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, err := w.served(); err != nil || !now.Equal(second) {
		t.Errorf("it serves no more: %v", err)
	}
	if s, err := w.secret(); client.IgnoreNotFound(err) != nil || s.Name != "" {
		t.Errorf("there is a Secret: %v", err)
	}
}

// fill replaces the files as the kubelet does: by a link to another folder.
func (w *world) fill(dir, host string) {
	w.t.Helper()
	data, err := certificate.MaterialDue(time.Now().Add(time.Hour), time.Now().Add(time.Hour), []string{host})
	if err != nil {
		w.t.Fatal(err)
	}
	behind := w.t.TempDir()
	link := filepath.Join(dir, "..data")
	var errs []error
	for _, name := range []string{certificate.KeyLeaf, certificate.KeyLeafKey, certificate.KeyBundle} {
		errs = append(errs, os.WriteFile(filepath.Join(behind, name), data[name], 0o600))
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			errs = append(errs, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
		}
	}
	errs = append(errs, os.Symlink(behind, link+"_tmp"), os.Rename(link+"_tmp", link))
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// With cert-manager our own configurations are its injector's, those of users
// are ours.
func TestCertManagerInjectsIntoOurOwn(t *testing.T) {
	w := newWorld(t, ignore, labels)
	dir := t.TempDir()
	w.fill(dir, "127.0.0.1")
	w.user(w.namespace+"-user", w.asks())
	w.serve(testenv.Shared().Config(), everywhere, func(o *admission.Options) { o.Source, o.CertDir = admission.CertManager, dir })
	bundle, err := os.ReadFile(filepath.Join(dir, certificate.KeyBundle))
	if err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if b, err := w.bundle(w.namespace + "-user"); err != nil || !bytes.Equal(b, bundle) {
			return fmt.Errorf("not injected: %w", err)
		}
		return nil
	})
	if b, err := w.bundle(w.namespace); err != nil || len(b) > 0 {
		t.Errorf("our own has the CA %q: %v", b, err)
	}
}

// Mistakes in flags are reported with the name of the flag.
func TestMistakes(t *testing.T) {
	w := newWorld(t, ignore, labels)
	for flag, change := range map[string]func(*admission.Options){
		"--webhook-namespace":      func(o *admission.Options) { o.Namespace = "" },
		"--webhook-cert-source":    func(o *admission.Options) { o.Source = "vault" },
		"--webhook-cert-dir":       func(o *admission.Options) { o.Source = admission.Files },
		"--webhook-host":           func(o *admission.Options) { o.Hosts = []string{"https://x"} },
		"--webhook-configurations": func(o *admission.Options) { o.Only = []string{"a b"} },
	} {
		o := w.webhooks.Options
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("want an error that names %s, got %v", flag, err)
		}
	}
	if err := w.webhooks.Options.Validate(); err != nil {
		t.Error(err)
	}
}
