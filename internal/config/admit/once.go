package admit

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// onceReader reads each object at most once, in one request.
type onceReader struct {
	client.Reader

	live client.Reader
	mu   sync.Mutex
	read map[string]*onceRead
}

type onceRead struct {
	once sync.Once
	obj  client.Object
	err  error
}

func newOnceReader(live, lists client.Reader) *onceReader {
	return &onceReader{live: live, Reader: lists, read: map[string]*onceRead{}}
}

// prefetch reads what is referenced in parallel, so that the user waits for the
// slowest read and not for their sum. An error is returned when the object is read
// again.
func (r *onceReader) prefetch(ctx context.Context, refs []content.Reference) {
	var group errgroup.Group
	group.SetLimit(content.Readers)
	for _, ref := range refs {
		if ref.Object.Kind != content.SecretProviderClass {
			group.Go(func() error {
				_ = r.Get(ctx, client.ObjectKey{Namespace: ref.Object.Namespace, Name: ref.Object.Name}, ref.Object.Kind.New())
				return nil
			})
		}
	}
	_ = group.Wait()
}

// Get reads a ConfigMap or Secret, or returns what was read before.
func (r *onceReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	read := r.of(fmt.Sprintf("%T %s", obj, key))
	read.once.Do(func() {
		read.obj, _ = obj.DeepCopyObject().(client.Object)
		read.err = r.live.Get(ctx, key, read.obj)
	})
	if read.err != nil {
		return read.err
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(read.obj.DeepCopyObject()).Elem())
	return nil
}

func (r *onceReader) of(key string) *onceRead {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read[key] == nil {
		r.read[key] = &onceRead{}
	}
	return r.read[key]
}
