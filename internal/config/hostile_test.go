package config_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/message"
)

// What one workload asks for is bounded: a list of tens of thousands of names counts with
// its first thousand, a long value is quoted in part, and what fits is followed.
func TestWhatAWorkloadAsksForIsBounded(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	names := make([]string, 30_000)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	w.apply(deployment("many", envFrom(configMapRef("app")), native+"extra-configmaps", strings.Join(names, ",")))
	w.apply(deployment("long", envFrom(configMapRef("app")), native+"priority", strings.Repeat("x", 200<<10)))
	w.apply(deployment("wrong", envFrom(configMapRef("app")), native+"extra-secrets", strings.Repeat("_,", 100<<10)))
	w.saysEventually("many", "must be a list of at most 1000 entries; ignoring the others")
	w.saysEventually("long", "(204800 bytes)")
	w.saysEventually("wrong", "and 991 more")
	env := make([]string, 5000)
	for i := range env {
		env[i] = fmt.Sprintf("{name: E%d, valueFrom: {configMapKeyRef: {name: m%d, key: a, optional: true}}}", i, i)
	}
	w.apply(deployment("large", "containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}], env: ["+strings.Join(env, ",")+"]}]"))
	w.saysEventually("large", "must be on a workload with fewer than 2000 references")
	for _, name := range []string{"many", "long", "wrong", "large"} {
		w.hashed(name, "")
		if n := len(w.condition(name)); n > 2*message.SentenceLength {
			t.Errorf("%s says %d bytes", name, n)
		}
	}
	explained, err := config.Status(t.Context(), snapshot.New(w.client, w.client.Scheme(), w.namespace), w.options, w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]int{"many": 1001, "long": 1, "wrong": 1, "large": 2000}
	for i := range explained {
		if e := &explained[i]; len(e.Uses) > most[e.Name] {
			t.Errorf("%d objects are followed for %s", len(e.Uses), e.Name)
		}
	}
	for _, request := range w.requests.take() {
		if _, name, ok := strings.Cut(request, "/configmaps/"); ok && name != "app" {
			t.Errorf("the manager asked for %s, which does not exist", request)
		}
	}
}

// A workload that is created with its config gets its first hash of all of it: what is not
// in the cache yet is asked for, unless that is more than anybody creates at a time.
func TestWhatMayHaveBeenCreatedWithAWorkloadIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.apply(deployment("few", envFrom(configMapRef("app"), "configMapRef: {name: x1, optional: true}", "configMapRef: {name: x2, optional: true}")))
	w.hashed("few", "")
	asked := map[string]int{}
	for _, request := range w.requests.take() {
		if _, name, ok := strings.Cut(request, "/configmaps/"); ok {
			asked[name]++
		}
	}
	if err := want("map[app:1 x1:1 x2:1]", fmt.Sprint(asked)); err != nil {
		t.Error(err)
	}
}

// All of its config is in memory while a hash is computed, so how much of it there is has a
// bound; other workloads are not concerned.
func TestTheConfigOfAWorkloadIsBounded(t *testing.T) {
	w := newWorld(t)
	w.manage()
	text, refs := strings.Repeat("x", 1<<20-100), make([]string, content.MostBytes>>20+2)
	for i := range refs {
		name := fmt.Sprintf("large-%d", i)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: map[string]string{"a": text}}
		if err := w.client.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		refs[i] = configMapRef(name)
	}
	w.apply(deployment("huge", envFrom(refs...)), deployment("small", envFrom(configMapRef("large-0"))))
	w.hashed("small", "")
	w.saysEventually("huge", "its ConfigMaps and Secrets cannot be read: they have more than 32 MiB; use fewer or smaller ones")
	if h := w.hash("huge"); h != "" {
		t.Errorf("it has the hash %s", h)
	}
}
