package serve

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A key may stand in the path of a webhook, and no two are alike.
func TestKeysFitIntoAPath(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		key := NewKey()
		if !IsKey(key) || seen[key] || len(validation.IsDNS1123Subdomain(key)) > 0 {
			t.Fatalf("made %q", key)
		}
		seen[key] = true
	}
	for _, other := range []string{"", "scale", "marked", "x" + NewKey(), "!" + NewKey()[1:]} {
		if IsKey(other) {
			t.Errorf("%q is taken for a key", other)
		}
	}
}

// A key that this replica does not know yet is looked up where it was written before. All who wait
// meanwhile share one read; what cannot be a key is not looked up.
func TestUnknownKeys(t *testing.T) {
	first, second := NewKey(), NewKey()
	var reads atomic.Int64
	fails := true
	begun := make(chan struct{})
	keys := NewKeys(func(context.Context) ([]string, error) {
		if reads.Add(1) == 1 {
			<-begun
		}
		if fails {
			return nil, errors.New("the API server is away")
		}
		return []string{second}, nil
	})
	keys.Accept([]string{first})
	if !keys.accepts(t.Context(), first) || keys.accepts(t.Context(), "scale") || keys.accepts(t.Context(), "") || reads.Load() != 0 {
		t.Fatalf("%d reads for what is known, or cannot be a key", reads.Load())
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if keys.accepts(t.Context(), second) {
				t.Error("accepted before it was read")
			}
		})
	}
	close(begun)
	group.Wait()
	if n := reads.Load(); n < 1 || n > 2 {
		t.Errorf("%d reads for a hundred requests", n)
	}
	fails = false
	if !keys.accepts(t.Context(), second) || !keys.accepts(t.Context(), first) {
		t.Error("not accepted after it was read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if keys.accepts(ctx, NewKey()) {
		t.Error("accepted without a read")
	}
}
