package config_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// A workload whose Pods run the earlier config until a user deletes them is not up to date,
// and says how many are left.
func TestPodsThatAUserHasToReplace(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	set := replaceOnce(workload("StatefulSet", "db", envFrom(configMapRef("app"))), "replicas: 1", "replicas: 2\n  updateStrategy: {type: OnDelete}")
	w.apply(set)
	w.eventually(func() error { return want(2, len(w.pods("db"))) })
	w.manage()
	says := func(state config.State, sentence string) {
		t.Helper()
		w.eventually(func() error {
			e, err := config.Explain(t.Context(), w.client, w.options, workloads.Name{Kind: workloads.StatefulSet, Namespace: w.namespace, Name: "db"})
			if err != nil {
				return err
			}
			return want(string(state)+": "+sentence, string(e.State)+": "+e.Sentence)
		})
	}
	says(config.StateWaiting, "StatefulSet db is waiting: 2 of 2 Pods run an earlier revision: its update strategy is OnDelete; delete them")
	w.remove(&corev1.Pod{}, "db-1")
	says(config.StateWaiting, "StatefulSet db is waiting: 1 of 2 Pods run an earlier revision: its update strategy is OnDelete; delete them")
	w.remove(&corev1.Pod{}, "db-0")
	says(config.StateUpToDate, "StatefulSet db is up to date")
	w.rests(func() {})
}
