package config_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config"
)

// wantHash computes wave's hash from its description, without our code:
// the JSON of sorted maps with base64 values, hashed.
func wantHash(t *testing.T, configMaps, secrets map[string]map[string]string) string {
	t.Helper()
	encode := func(objects map[string]map[string]string) map[string]map[string]string {
		encoded := map[string]map[string]string{}
		for name, values := range objects {
			encoded[name] = map[string]string{}
			for key, value := range values {
				encoded[name][key] = base64.StdEncoding.EncodeToString([]byte(value))
			}
		}
		return encoded
	}
	raw, err := json.Marshal(struct {
		ConfigMaps map[string]map[string]string `json:"configMaps"`
		Secrets    map[string]map[string]string `json:"secrets"`
	}{encode(configMaps), encode(secrets)})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

type values = map[string]map[string]string

// The three cases that wave's authors wrote down, without admission.

func TestCaseAEverythingIsThereBeforeTheWorkload(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.secret("db", "p", "q")
	w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))
	got := w.hashed("web", "")
	if want := wantHash(t, values{"app": {"a": "1"}}, values{"db": {"p": "q"}}); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
	w.settled()
	w.settledWith("web", 2) // the first, and the one restart for the hash
}

func TestCaseBAnOptionalObjectAppearsLater(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(deployment("web", envFrom("configMapRef: {name: later, optional: true}")))
	first := w.hashed("web", "")
	w.configMap("later", "a", "1")
	w.hashed("web", first)
	w.settled()
	w.settledWith("web", 3) // exactly one more
}

func TestCaseCARequiredObjectIsMissingAtCreation(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))
	w.saysEventually("web", "ConfigMap app not found, Secret db not found")
	w.configMap("app", "a", "1")
	w.saysEventually("web", `"message":"Secret db not found"`)
	if got := w.replicaSets("web"); got != 1 {
		t.Errorf("it was rolled while something was missing: %d ReplicaSets", got)
	}
	w.secret("db", "p", "q")
	w.hashed("web", "")
	w.settled()
	w.settledWith("web", 2) // one roll
	if c := w.condition("web"); c != "" {
		t.Errorf("the condition still exists: %s", c)
	}
}

func TestStatefulSetsAndDaemonSetsRollToo(t *testing.T) {
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.configMap("app", "a", "1")
			w.apply(workload(kind, "web", envFrom(configMapRef("app"))))
			w.eventually(func() error { return want(2, w.revisions("web")) })
			w.configMap("app", "a", "2")
			w.eventually(func() error { return want(3, w.revisions("web")) })
			w.settled()
			if err := want(3, w.revisions("web")); err != nil {
				t.Error(err)
			}
		})
	}
}

func want[T comparable](want, got T) error {
	if got != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// Every way to use config: a change of what is used rolls, another does not.
func TestEveryReferenceRolls(t *testing.T) {
	for name, test := range map[string]struct {
		podSpec     string
		annotations []string
		// narrow is true if only key "used" counts.
		narrow bool
		secret bool
		// hash has the object as wave hashes it, nil if it would not.
		hash bool
	}{
		"volume":            {podSpec: "containers: [{name: c, image: x}]\nvolumes: [{name: v, configMap: {name: app}}]", hash: true},
		"volume items":      {podSpec: "containers: [{name: c, image: x}]\nvolumes: [{name: v, configMap: {name: app, items: [{key: used, path: p}]}}]", narrow: true},
		"secret volume":     {podSpec: "containers: [{name: c, image: x}]\nvolumes: [{name: v, secret: {secretName: app}}]", secret: true, hash: true},
		"projected":         {podSpec: "containers: [{name: c, image: x}]\nvolumes: [{name: v, projected: {sources: [{configMap: {name: app}}]}}]", hash: true},
		"projected items":   {podSpec: "containers: [{name: c, image: x}]\nvolumes: [{name: v, projected: {sources: [{secret: {name: app, items: [{key: used, path: p}]}}]}}]", narrow: true, secret: true, hash: true},
		"envFrom":           {podSpec: envFrom(configMapRef("app")), hash: true},
		"env":               {podSpec: "containers: [{name: c, image: x, env: [{name: E, valueFrom: {configMapKeyRef: {name: app, key: used}}}]}]", narrow: true, hash: true},
		"secret env":        {podSpec: "containers: [{name: c, image: x, env: [{name: E, valueFrom: {secretKeyRef: {name: app, key: used}}}]}]", narrow: true, secret: true, hash: true},
		"init container":    {podSpec: "containers: [{name: c, image: x}]\ninitContainers: [{name: i, image: x, envFrom: [{secretRef: {name: app}}]}]", secret: true},
		"sidecar":           {podSpec: "containers: [{name: c, image: x}]\ninitContainers: [{name: i, image: x, restartPolicy: Always, env: [{name: E, valueFrom: {configMapKeyRef: {name: app, key: used}}}]}]", narrow: true},
		"extra":             {podSpec: "containers: [{name: c, image: x}]", annotations: []string{"wave.pusher.com/extra-configmaps", "app"}, hash: true},
		"extra secret":      {podSpec: "containers: [{name: c, image: x}]", annotations: []string{native + "extra-secrets", "app"}, secret: true, hash: true},
		"image pull secret": {podSpec: "containers: [{name: c, image: x}]\nimagePullSecrets: [{name: app}]", annotations: []string{native + "track-image-pull-secrets", "true"}, secret: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			set, contents := w.configMap, func(v map[string]string) string { return wantHash(t, values{"app": v}, nil) }
			if test.secret {
				set, contents = w.secret, func(v map[string]string) string { return wantHash(t, nil, values{"app": v}) }
			}
			set("app", "used", "1", "other", "1")
			w.apply(deployment("web", test.podSpec, test.annotations...))
			first := w.hashed("web", "")
			set("app", "used", "2", "other", "1")
			second := w.hashed("web", first)
			set("app", "used", "2", "other", "2")
			w.settled()
			if rolled := w.hash("web") != second; rolled == test.narrow {
				t.Errorf("a change of another key: rolled %v, want %v", rolled, !test.narrow)
			}
			if test.hash {
				now := map[string]string{"used": "2", "other": "2"}
				if test.narrow {
					delete(now, "other")
				}
				if err := want(contents(now), w.hash("web")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What must not be read of another namespace is left out: the workload's own config is
// followed, and changing over restarts nothing, whether wave had counted the object or not.
func TestWhatIsNotSharedIsLeftOut(t *testing.T) {
	own := map[string]string{"a": "1"}
	const notShared = "/ca not found, or not shared with namespace "
	for name, test := range map[string]struct {
		exists, unwatched bool
		wave              values
		says              string
	}{
		"not shared":            {exists: true, wave: values{"app": own, "ca": {"k": "1"}}, says: notShared},
		"not found":             {wave: values{"app": own}, says: notShared},
		"not watched":           {exists: true, unwatched: true, wave: values{"app": own, "ca": {"k": "1"}}, says: "/ca is in a namespace that the manager does not watch; add it to --namespaces; ignoring it"},
		"not watched nor found": {unwatched: true, wave: values{"app": own}, says: "/ca is in a namespace that the manager does not watch; add it to --namespaces; ignoring it"},
	} {
		t.Run(name, func(t *testing.T) {
			w, other := newWorld(t), newNamespace(t)
			if !test.unwatched {
				w.options.Namespaces = append(w.options.Namespaces, other)
			}
			w.configMap("app", "a", "1")
			if test.exists {
				w.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca, namespace: " + other + "}\ndata: {k: \"1\"}")
			}
			extra := []string{"wave.pusher.com/extra-configmaps", other + "/ca"}
			waves := wantHash(t, test.wave, nil)
			w.apply(withHash(deployment("waves", envFrom(configMapRef("app")), extra...), waves), deployment("new", envFrom(configMapRef("app")), extra...))
			w.manage()
			w.saysEventually("waves", `"reason":"NotPermitted","message":"ConfigMap `+other+test.says)
			first := w.hashed("new", "")
			if err := want(wantHash(t, values{"app": own}, nil), first); err != nil {
				t.Error(err)
			}
			w.settled()
			if err := want(waves, w.hash("waves")); err != nil {
				t.Error(err)
			}
			if e := w.explain("waves"); e.State != config.StateUpToDate || len(e.LeftOut) != 1 {
				t.Errorf("explain says %s %v", e.Sentence, e.LeftOut)
			}
			w.configMap("app", "a", "2")
			w.hashed("new", first)
			w.hashed("waves", waves)
			w.eventually(func() error { return want(1, len(w.events("NotPermitted"))-1) })
		})
	}
}

// The extra config of another namespace counts if its owner shares it.
func TestExtraConfigOfAnotherNamespace(t *testing.T) {
	w, other := newWorld(t), newNamespace(t)
	w.options.Namespaces = append(w.options.Namespaces, other)
	w.manage()
	shared := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca, namespace: " + other + "%s}\ndata: {k: %q}"
	w.apply(fmt.Sprintf(shared, "", "1"))
	w.apply(deployment("web", "containers: [{name: c, image: x}]", "wave.pusher.com/extra-configmaps", other+"/ca"))
	w.saysEventually("web", fmt.Sprintf("ConfigMap %s/ca not found, or not shared with namespace %s; annotate it with spillway.dev/shared-with: %s; ignoring it", other, w.namespace, w.namespace))
	without := w.hashed("web", "")
	sharing := ", annotations: {spillway.dev/shared-with: " + w.namespace + "}"
	w.apply(fmt.Sprintf(shared, sharing, "1"))
	first := w.hashed("web", without)
	if err := want(wantHash(t, values{"ca": {"k": "1"}}, nil), first); err != nil {
		t.Error(err)
	}
	w.apply(fmt.Sprintf(shared, sharing, "2"))
	w.hashed("web", first)
}

// Changing over: what wave has hashed does not change.
func TestChangingOverWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1", "b", "")
	w.secret("db", "p", "q")
	hash := wantHash(t, values{"app": {"a": "1", "b": ""}}, values{"db": {"p": "q"}})
	for i := range 5 {
		w.apply(withHash(deployment(fmt.Sprintf("web-%d", i), envFrom(configMapRef("app"), secretRef("db"))), hash))
	}
	w.silent(func() { w.manage() })
	w.rests(func() {
		for i := range 5 {
			name := fmt.Sprintf("web-%d", i)
			if err := want(hash, w.hash(name)); err != nil {
				t.Error(err)
			}
			w.settledWith(name, 1)
		}
	})
}

// Where ours reads more, changing over restarts nothing either; what it reads in
// addition counts from its next change, also one that no manager observed.
func TestAdoptionOfAWiderScope(t *testing.T) {
	for name, down := range map[string]bool{"changed while watched": false, "changed while the manager is down": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configMap("app", "a", "1")
			w.secret("init", "p", "1")
			spec := envFrom(configMapRef("app")) + "\ninitContainers: [{name: i, image: x, envFrom: [{secretRef: {name: init}}]}]"
			hash := wantHash(t, values{"app": {"a": "1"}}, nil)
			w.apply(withHash(deployment("web", spec), hash))
			w.manage()
			w.eventually(func() error {
				return want(true, w.adopted("web").Scope != "")
			})
			if down {
				w.halt()
			}
			w.settledWith("web", 1)
			w.secret("init", "p", "2")
			if down {
				w.manage()
			}
			w.hashed("web", hash)
			w.settled()
			w.settledWith("web", 2)
		})
	}
}

// What only ours reads may have no values at first; when they appear the workload
// rolls, whichever client wrote the hash, also if no manager observed it.
func TestWhatOnlyOursReadsAppearsLater(t *testing.T) {
	spec := envFrom(configMapRef("app")) + "\ninitContainers: [{name: i, image: x, envFrom: [{secretRef: {name: init, optional: true}}]}]"
	for name, adopted := range map[string]bool{"hashed by us": false, "taken over": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configMap("app", "a", "1")
			manifest, hash := deployment("web", spec), wantHash(t, values{"app": {"a": "1"}}, nil)
			if adopted {
				manifest = withHash(manifest, hash)
			}
			w.apply(manifest)
			w.manage()
			w.eventually(func() error { return want(hash, w.hash("web")) })
			w.settled()
			w.halt()
			w.secret("init", "p", "1")
			w.manage()
			second := w.hashed("web", hash)
			w.secret("init", "p", "2")
			w.hashed("web", second)
		})
	}
}

// Ours reads less where items are given: the other keys restart nothing.
func TestAdoptionOfANarrowerScope(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "used", "1", "other", "1")
	hash := wantHash(t, values{"app": {"used": "1", "other": "1"}}, nil)
	spec := "containers: [{name: c, image: x}]\nvolumes: [{name: v, configMap: {name: app, items: [{key: used, path: p}]}}]"
	w.apply(withHash(deployment("web", spec), hash))
	w.manage()
	w.eventually(func() error {
		return want(true, w.adopted("web").Scope != "")
	})
	w.configMap("app", "used", "1", "other", "2")
	w.settled()
	if err := want(hash, w.hash("web")); err != nil {
		t.Error(err)
	}
	w.configMap("app", "used", "2", "other", "2")
	w.hashed("web", hash)
}

// Nothing is missed: what changes while the manager is down is caught up with,
// and each workload is rolled once.
func TestWhatChangesWhileTheManagerIsDown(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.configMap("gone", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))), deployment("other", envFrom("configMapRef: {name: gone, optional: true}")))
	w.manage()
	web, other := w.hashed("web", ""), w.hashed("other", "")
	w.halt()
	w.configMap("app", "a", "2")
	w.configMap("app", "a", "3")
	w.remove(&corev1.ConfigMap{}, "gone")
	w.apply(deployment("new", envFrom(configMapRef("app"))))
	w.manage()
	w.hashed("web", web)
	w.hashed("other", other)
	w.hashed("new", "")
	w.settled()
	w.settledWith("web", 3)
	w.settledWith("other", 3)
}

func withHash(manifest, hash string) string {
	return replaceOnce(manifest, "    metadata: {labels: {app:", "    metadata: {annotations: {"+waveHash+": "+hash+"}, labels: {app:")
}
