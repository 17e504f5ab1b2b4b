package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// A cluster is asked for its version and its API groups with its own kubeconfig; one that cannot be reached says why,
// and is asked again once it answers.
func TestWhatAClusterServes(t *testing.T) {
	h := newHub(t)
	book := cluster.NewFactBook(time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	run := book.Run((&assemblage.Clusters{Directory: h.directory, Registry: h.registry}).Connect)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	h.registry.Subscribe(book.AskAgain)
	key := h.key(cluster.SecretName("c1"))
	if book.Of(key) != nil {
		t.Error("it is known before it was asked")
	}
	h.fails("c1", cluster.ErrMissing.Error()) // the caches run by then
	book.Ask(key)
	says := func(what string, is func(*cluster.Facts) bool) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			f := book.Of(key)
			if f == nil {
				return errors.New("it was not asked yet")
			}
			if !is(f) {
				return fmt.Errorf("want %s: %+v", what, f)
			}
			return nil
		})
	}
	says("a problem", func(f *cluster.Facts) bool { return f.Problem == cluster.ErrMissing.Error() })
	h.create(testenv.KubeconfigSecret(t, h.namespace, "c1", testenv.Workload(0)))
	h.connected("c1")
	book.Ask(key)
	says("its version", func(f *cluster.Facts) bool {
		return f.Problem == "" && f.Major == 1 && f.Minor >= 37 && f.Version != "" && f.APIs["apps/v1"] && f.APIs["v1"] && !f.APIs["x.test/v1"]
	})
	book.Forget(key)
	if book.Of(key) != nil {
		t.Error("it is still known")
	}
}
