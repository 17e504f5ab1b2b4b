package config

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/kube"
)

// admitter answers the API server when a workload is created or updated. It
// never refuses one, and it changes nothing but its answer, so that a dry run
// is answered like any other request. What it cannot find out in time it leaves
// to the ring.
type admitter struct {
	options Options
	// live reads ConfigMaps and Secrets from the API server: one that was created
	// a moment before the workload may not be in any cache yet.
	live client.Reader
	// lists lists what the secrets store driver has mounted.
	lists client.Reader
	// provided is true where that driver is installed.
	provided bool
}

// Handle answers one request.
func (a *admitter) Handle(ctx context.Context, req admission.Request) admission.Response {
	if isOurs(req.Options.Raw) || !a.options.watches(req.Namespace) {
		return admission.Allowed("")
	}
	now, before, err := decode(req)
	if err != nil { // which the failure policy lets pass: nothing is refused for our ignorance
		return admission.Errored(http.StatusInternalServerError, err)
	}
	attempt := attempt{now: learn(now), unchanged: sameTemplate(before, now)}
	if before != nil {
		attempt.before = learn(before)
	}
	if attempt.now.Settings.Tracked && !attempt.leaves() { // else nobody asks what the config is
		attempt.now = a.observe(ctx, now)
	}
	return response(admit(attempt, a.options))
}

// decode reads the workload as it is to be, and as it was; nil if it is new.
func decode(req admission.Request) (now, before client.Object, err error) {
	if !workloadKinds[req.Kind.Kind] {
		return nil, nil, fmt.Errorf("%q is no kind of workload", req.Kind.Kind)
	}
	now = emptyWorkload(req.Kind.Kind)
	if err := json.Unmarshal(req.Object.Raw, now); err != nil {
		return nil, nil, fmt.Errorf("decode the workload: %w", err)
	}
	if now.GetNamespace() == "" {
		now.SetNamespace(req.Namespace)
	}
	if req.Operation != admissionv1.Update {
		return now, nil, nil
	}
	before = emptyWorkload(req.Kind.Kind)
	if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("decode the former workload: %w", err)
	}
	return now, before, nil
}

// isOurs is true for a write of the ring's own, which knows what it does.
func isOurs(options []byte) bool {
	var o metav1.UpdateOptions
	return json.Unmarshal(options, &o) == nil && o.FieldManager == kube.FieldOwner
}

// watches is true if workloads of the namespace are looked at.
func (o Options) watches(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}

// learn reads what a workload itself says.
func learn(obj client.Object) *Workload {
	r := &recollection{}
	r.learn(obj)
	w := r.workload()
	return &w
}

// observe looks at a workload that is not there yet as the ring would if it
// were, and at its config as it is this moment.
func (a *admitter) observe(ctx context.Context, obj client.Object) *Workload {
	live := &onceReader{live: a.live, Reader: a.lists, read: map[string]*onceRead{}}
	o := observer{options: a.options, digests: digestingReader{live}, values: live, provided: a.provided, memory: memory{}}
	p := &pass{observer: &o, now: a.options.Now(), facts: map[Object]facts{}}
	r := o.memory.of(obj)
	r.learn(obj)
	live.prefetch(ctx, r.refs)
	if err := p.lookUp(ctx, r); err != nil {
		r.failed(p.now, err, false)
	} else {
		p.judge(r)
		p.hash(ctx, []*recollection{r})
	}
	w := r.workload()
	return &w
}

// response is an answer as the API server wants it.
func response(a answer) admission.Response {
	res := admission.Allowed("")
	res.Warnings = a.warnings
	for _, op := range a.operations {
		res.Patches = append(res.Patches, jsonpatch.NewOperation(op.Op, op.Path, op.Value))
	}
	return res
}

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

// Get reads a ConfigMap or Secret, or remembers it.
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

// prefetch reads what is referenced side by side, so that the user waits for
// the slowest read and not for their sum. What fails is met again later.
func (r *onceReader) prefetch(ctx context.Context, refs []Reference) {
	var group errgroup.Group
	group.SetLimit(readers)
	for _, ref := range refs {
		if ref.Object.Kind != SecretProviderClass {
			group.Go(func() error {
				_ = r.Get(ctx, client.ObjectKey{Namespace: ref.Object.Namespace, Name: ref.Object.Name}, emptyObject(ref.Object.Kind))
				return nil
			})
		}
	}
	_ = group.Wait()
}
