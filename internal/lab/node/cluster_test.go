package node_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/spillway-dev/spillway/internal/lab/node"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// What keeps the stories from running on a cluster is said before the first of them.
func TestWhatAClusterLacks(t *testing.T) {
	for want, config := range map[string]*rest.Config{
		"use one of cluster-admin":        testenv.Shared().ConfigAs("limited"),
		"check the kubeconfig of CLUSTER": {Host: "https://127.0.0.1:1"},
	} {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.CheckCluster(t.Context(), c, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
