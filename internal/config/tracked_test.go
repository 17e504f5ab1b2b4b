package config_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
)

// Opting in restarts nothing, neither by the annotation nor by a policy: what runs with the present config is
// rolled with its first change.
func TestOptingInRestartsNothing(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	names := []string{"annotated", "selected", "refuses", "other"}
	for _, name := range names {
		w.apply(strings.Replace(deployment(name, envFrom(configMapRef("app"))), waveTracked+`: "true"`, "x: z", 1))
	}
	w.patch(w.deploymentNow("selected"), "selected", `{"metadata":{"labels":{"team":"shop"}}}`)
	w.patch(w.deploymentNow("refuses"), "refuses", `{"metadata":{"labels":{"team":"shop"},"annotations":{"spillway.dev/update-on-config-change":"false"}}}`)
	for _, name := range names {
		w.settledWith(name, 1)
	}
	touched := 0
	w.eventually(func() error { // in another second than that of its creation, which tells the opt-in from that
		touched++
		w.patch(w.deploymentNow("annotated"), "annotated", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, touched))
		d := w.deploymentNow("annotated")
		return want(true, slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Subresource == "" && e.Time.After(d.CreationTimestamp.Time)
		}))
	})
	w.policy("all", "{track: true, selector: {matchLabels: {team: shop}}}")
	w.patch(w.deploymentNow("annotated"), "annotated", `{"metadata":{"annotations":{"spillway.dev/update-on-config-change":"true"}}}`)
	w.hashed("annotated", "")
	first := w.hashed("selected", "")
	if e := w.explain("selected"); e.State != config.StateUpToDate {
		t.Errorf("it is %+v", e)
	}
	for _, name := range names {
		w.settledWith(name, 1)
	}

	w.configMap("app", "a", "2")
	second := w.hashed("selected", first)
	w.settledWith("annotated", 2)
	w.settledWith("selected", 2)
	w.settledWith("refuses", 1)
	w.settledWith("other", 1)

	w.remove(&v1alpha1.ConfigPolicy{}, "all")
	w.settled()
	w.configMap("app", "a", "3")
	w.settledWith("annotated", 3)
	w.settled()
	if err := want(second, w.hash("selected")); err != nil {
		t.Error(err)
	}
}

// What is edited together with the opt-in is rolled: the Pods may run with what was before.
func TestWhatIsEditedWithTheOptInIsRolled(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "0")
	w.apply(strings.Replace(deployment("web", envFrom(configMapRef("app"))), waveTracked, "x", 1))
	w.settledWith("web", 1)
	value := 0
	w.eventually(func() error { // in another second than that of its creation, which tells it from an edit
		value++
		w.configMap("app", "a", strconv.Itoa(value))
		app := &corev1.ConfigMap{}
		if err := w.get(app, "app"); err != nil {
			return err
		}
		return want(false, app.ManagedFields[0].Time.Equal(&app.CreationTimestamp))
	})
	w.patch(w.deploymentNow("web"), "web", `{"metadata":{"annotations":{"spillway.dev/update-on-config-change":"true"}}}`)
	w.manage()
	w.settledWith("web", 2)
}
