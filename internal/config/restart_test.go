package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A manager that begins reads the values of what has changed since a hash was written, and
// of nothing else; and what has changed it does not miss.
func TestARestartReadsOnlyWhatChanged(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		app := fmt.Sprintf("app-%d", i)
		w.configMap(app, "a", "1")
		w.apply(deployment(fmt.Sprintf("web-%d", i), envFrom(configMapRef(app), "configMapRef: {name: none, optional: true}")))
	}
	w.secret("db", "p", "1")
	w.apply(deployment("db", envFrom(secretRef("db"))))
	w.manage()
	before := map[string]string{"db": w.hashed("db", "")}
	for i := range 20 {
		name := fmt.Sprintf("web-%d", i)
		before[name] = w.hashed(name, "")
	}
	w.settled()
	w.halt()
	w.requests.take()
	w.configMap("app-3", "a", "2")
	w.secret("db", "p", "2")
	w.patch(&corev1.ConfigMap{}, "app-4", `{"metadata":{"labels":{"touched":"yes"}}}`) // its version is another, its data is not
	w.remove(&corev1.ConfigMap{}, "app-5")
	w.configMap("app-5", "a", "1")
	w.manage()
	w.hashed("web-3", before["web-3"])
	w.hashed("db", before["db"])
	w.settled()
	var read []string
	for _, request := range w.requests.take() {
		for _, kind := range []string{"/configmaps/", "/secrets/"} {
			if _, name, ok := strings.Cut(request, kind); ok {
				read = append(read, name)
			}
		}
		if strings.HasPrefix(request, "PATCH") && !strings.Contains(request, "/web-3?") && !strings.Contains(request, "/db?") {
			t.Errorf("the manager asked for %s", request)
		}
	}
	slices.Sort(read)
	if err := want("[app-3 app-4 app-5 db]", fmt.Sprint(read)); err != nil {
		t.Error(err)
	}
	for name, hash := range before {
		if now := w.hash(name); (now != hash) != (name == "web-3" || name == "db") {
			t.Errorf("%s had the hash %s and has %s", name, hash, now)
		}
	}
}

// The record of what a hash was computed from is the users' as well: what they write there
// is compared with what is, and a record of another workload says nothing.
func TestARecordOfInputsCountsForItsWorkloadAlone(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(deployment("one", envFrom(configMapRef("app"))), deployment("two", envFrom(configMapRef("app"))))
	w.manage()
	hash := w.hashed("one", "")
	w.hashed("two", "")
	w.settled()
	w.halt()
	w.configMap("app", "a", "2")
	w.annotate("two", native+"config-change", w.deploymentNow("one").Annotations[native+"config-change"])
	w.manage()
	w.hashed("one", hash)
	w.hashed("two", hash)
}
