package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A workload that mounts what has failed elsewhere is not said to keep the previous config, by its
// sentence, its condition or what explain adds; all of them name the annotation that would keep it.
func TestAMountedWorkloadIsNotSaidToKeepItsConfig(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	startKubelets(w)
	w.secret("db", "p", "good")
	mounted := "containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\nvolumes: [{name: v, secret: {secretName: db}}]"
	w.apply(still(deployment("app1", envFrom(secretRef("db")))), still(deployment("app2", mounted)))
	w.manage()
	w.ready("app1", "app2")
	w.secret("db", "p", "bad")
	w.stopped("app1", "app2")
	const advice = `spillway.dev/pin-config`
	e := w.explain("app2")
	if !strings.HasSuffix(e.Sentence, "; running Pods of 1 workload get the new content, which they mount") {
		t.Errorf("it says %s", e.Sentence)
	}
	if c := w.condition("app2"); !strings.Contains(c, "its running Pods get the new content, because they mount it") || !strings.Contains(c, advice) {
		t.Errorf("the condition is %s", c)
	}
	if len(e.Keeps) != 1 || !strings.HasPrefix(e.Keeps[0], "Secret db: its running Pods get the new content") || !strings.Contains(e.Keeps[0], advice) {
		t.Errorf("explain adds %q", e.Keeps)
	}
	w.eventually(func() error {
		for _, event := range w.events("ConfigFailed") {
			if strings.Contains(fmt.Sprint(event), "keep") && !strings.Contains(fmt.Sprint(event), advice) {
				return fmt.Errorf("an Event says %v", event)
			}
		}
		return errors.Join(want(true, len(w.events("ConfigFailed")) >= 2))
	})
}
