package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// probesParallel bounds how many clusters are probed at a time that may well answer, and
	// silentParallel how many of the others.
	probesParallel = 64
	silentParallel = 32
	// firstPatience is how long a cluster may take to answer a request before it is probed,
	// and to answer the probe before others have their turn; patience is how long it may
	// take apart from them. So it is known 12 seconds after a request that is not answered.
	firstPatience = 2 * time.Second
	patience      = 8 * time.Second
	// questionsKept is how many questions about one cluster are remembered.
	questionsKept = 64
)

// ErrMissing is that there is no Secret with a kubeconfig (yet).
var ErrMissing = errors.New("Secret with its kubeconfig not found")

// ErrUnproven is that the cluster has not answered yet, and has not failed to either.
var ErrUnproven = errors.New("the cluster has not answered yet")

// UnreachableError says that a cluster does not answer.
type UnreachableError struct {
	// Since is when it was first found out.
	Since time.Time
	// Reason is what came back instead.
	Reason string
}

// Options are what a registry needs.
type Options struct {
	// Live reads Secrets from the API server of the hub.
	Live client.Reader
	// Asks is the client of all clusters, by [NewClient].
	Asks Client
	// Now is the clock.
	Now func() time.Time
	// Wrap changes how clusters are talked to, nil if it is not to be changed.
	Wrap func(*rest.Config) *rest.Config
	// Network restricts where kubeconfigs lead, unless it is nil.
	Network *Network
	// BackOff is how long to wait after the first failed probe, and at most; zero is
	// one second and five minutes.
	BackOff, BackOffMax time.Duration
	// FirstPatience is how long a cluster that may well answer is waited for before it has
	// to make room for others, Patience how long it is waited for apart from them; zero is
	// two seconds and eight.
	FirstPatience, Patience time.Duration
}

// Registry holds the connections to clusters. It is safe for concurrent use.
type Registry struct {
	options Options
	// queue holds the clusters that probably answer, and silent those that do not, or not
	// immediately: probes of the latter take long, and no other cluster must wait for them.
	queue  workqueue.TypedInterface[types.NamespacedName]
	silent workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu          sync.Mutex
	entries     map[types.NamespacedName]*entry
	subscribers []func(secret types.NamespacedName)
}

// entry is what is known of one cluster, by its Secret.
type entry struct {
	// digest is that of the kubeconfig, version that of the Secret when it was read.
	digest, version string
	// invalid is what is wrong with the kubeconfig.
	invalid error
	conn    *Connection
	// proven is true once it has answered, answered is when it last answered a probe.
	proven   bool
	answered time.Time
	down     *UnreachableError
	// asked are the questions whether it answers; true once it did after the question.
	asked map[string]bool
}

// NewRegistry returns a registry without connections. It must be started.
func NewRegistry(o Options) *Registry {
	if o.BackOff == 0 {
		o.BackOff, o.BackOffMax = time.Second, 5*time.Minute
	}
	if o.Patience == 0 {
		o.FirstPatience, o.Patience = firstPatience, patience
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](o.BackOff, o.BackOffMax)
	return &Registry{
		options: o, entries: map[types.NamespacedName]*entry{},
		queue:  workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: "fleet-probes"}),
		silent: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "fleet-probes-silent"}),
	}
}

// Subscribe has f called whenever it changes whether a cluster answers.
func (r *Registry) Subscribe(f func(secret types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, f)
}

// Start probes until the context ends.
func (r *Registry) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range probesParallel {
		workers.Go(func() { work(ctx, r.queue, r.probeFirst) })
	}
	for range silentParallel {
		workers.Go(func() { work(ctx, r.silent, r.probeSilent) })
	}
	<-ctx.Done()
	r.queue.ShutDown()
	r.silent.ShutDown()
	workers.Wait()
	return nil
}

// Connect gives the connection to the cluster whose kubeconfig is in a Secret, if it
// answers. The error is [ErrMissing], [ErrUnproven], an [InvalidError], an
// [UnreachableError], or one of the hub's API server. It never dials the cluster.
//
// The version is the resourceVersion of the Secret as far as the caller knows, empty
// if there is none: only another one is read.
func (r *Registry) Connect(ctx context.Context, secret types.NamespacedName, version string) (*Connection, error) {
	if version == "" {
		r.Forget(secret)
		return nil, ErrMissing
	}
	if !r.knows(secret, version) {
		if err := r.read(ctx, secret); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[secret]
	switch {
	case e == nil:
		return nil, ErrMissing
	case e.invalid != nil:
		return nil, e.invalid
	case e.down != nil:
		return nil, e.down
	case !e.proven:
		return nil, ErrUnproven
	default:
		return e.conn, nil
	}
}

func (r *Registry) knows(secret types.NamespacedName, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[secret]
	return e != nil && e.version == version
}

// read reads the Secret. Unless its content is what it was, there is a new connection,
// which has to prove itself.
func (r *Registry) read(ctx context.Context, key types.NamespacedName) error {
	secret := &corev1.Secret{}
	err := r.options.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		r.Forget(key)
		return ErrMissing
	}
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", key.Name, err)
	}
	sum := sha256.Sum256(secret.Data[KubeconfigKey])
	digest := hex.EncodeToString(sum[:])
	if r.reread(key, digest, secret.ResourceVersion) {
		return nil
	}
	fresh := &entry{digest: digest, version: secret.ResourceVersion}
	fresh.conn, fresh.invalid = r.dialless(secret.Data[KubeconfigKey], digest)
	r.mu.Lock()
	former := r.entries[key]
	r.entries[key] = fresh
	r.mu.Unlock()
	former.close()
	r.silent.Forget(key) // what it failed with before says nothing about this one
	if fresh.invalid == nil {
		r.probe(key)
	}
	return nil
}

// reread is true if the content is what it was.
func (r *Registry) reread(key types.NamespacedName, digest, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil || e.digest != digest {
		return false
	}
	e.version = version
	return true
}

// Answered returns true if the cluster has answered after the question was first put. A
// question is put by its name: for example the failure that makes the caller ask. The
// answer reaches the caller as it reaches subscribers.
func (r *Registry) Answered(secret types.NamespacedName, question string) bool {
	r.mu.Lock()
	e := r.entries[secret]
	if e == nil || e.conn == nil {
		r.mu.Unlock()
		return false
	}
	answered, asked := e.asked[question]
	if !asked {
		if e.asked == nil || len(e.asked) >= questionsKept {
			e.asked = map[string]bool{}
		}
		e.asked[question] = false
	}
	r.mu.Unlock()
	if !asked {
		r.probe(secret)
	}
	return answered
}

// Verify has a cluster probed that is taken to answer, unless it has answered a probe within
// a time.
func (r *Registry) Verify(secret types.NamespacedName, within time.Duration) {
	r.mu.Lock()
	e := r.entries[secret]
	fresh := e == nil || r.options.Now().Before(e.answered.Add(within))
	r.mu.Unlock()
	if !fresh {
		r.Suspect(secret)
	}
}

// Expect has a cluster probed, unless it answers a request within the time that others wait
// for it. It returns what to call once the request is over.
func (r *Registry) Expect(ctx context.Context, secret types.NamespacedName) (over func()) {
	ctx, over = context.WithTimeout(ctx, r.options.FirstPatience)
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.Suspect(secret)
		}
	})
	return over
}

// Failed has a cluster probed to which a request failed. After one that was not answered in
// time it is unknown whether the cluster answers until the probe is over, so that no other
// request waits for as long.
func (r *Registry) Failed(secret types.NamespacedName, err error) {
	r.mu.Lock()
	if e := r.entries[secret]; e != nil && isTimeout(err) {
		e.proven = false
	}
	r.mu.Unlock()
	r.Suspect(secret)
}

// Suspect has a cluster probed, because something failed that may be its fault. It is
// taken to answer until the probe says otherwise.
func (r *Registry) Suspect(secret types.NamespacedName) {
	r.mu.Lock()
	e := r.entries[secret]
	known := e != nil && e.conn != nil && e.down == nil
	r.mu.Unlock()
	if known {
		r.probe(secret)
	}
}

func work(ctx context.Context, queue workqueue.TypedInterface[types.NamespacedName], probe func(context.Context, types.NamespacedName)) {
	for {
		secret, quit := queue.Get()
		if quit {
			return
		}
		probe(ctx, secret)
		queue.Done(secret)
	}
}

// probeFirst probes a cluster that probably answers. If it does not immediately, nothing is
// known yet, and it is probed again where no other cluster waits for it.
func (r *Registry) probeFirst(ctx context.Context, secret types.NamespacedName) {
	e, questions := r.open(secret)
	switch {
	case e == nil:
	case r.isDown(e):
		r.silent.Add(secret)
	default:
		late, err := e.conn.answers(ctx, r.options.FirstPatience)
		if late {
			r.silent.Add(secret)
			return
		}
		r.conclude(ctx, secret, e, questions, err)
	}
}

// probeSilent asks one of the others, with all the time that it may take.
func (r *Registry) probeSilent(ctx context.Context, secret types.NamespacedName) {
	e, questions := r.open(secret)
	if e == nil {
		r.silent.Forget(secret)
		return
	}
	_, err := e.conn.answers(ctx, r.options.Patience)
	r.conclude(ctx, secret, e, questions, err)
}

// conclude notes whether a cluster answers, and has it asked again later if it does not.
func (r *Registry) conclude(ctx context.Context, secret types.NamespacedName, e *entry, questions []string, err error) {
	if ctx.Err() != nil {
		return
	}
	changed := r.note(secret, e, questions, err)
	if err == nil {
		r.silent.Forget(secret)
	} else {
		r.silent.AddRateLimited(secret)
	}
	if changed {
		r.notify(secret)
	}
}

// Forget drops the connection to a cluster.
func (r *Registry) Forget(secret types.NamespacedName) {
	r.mu.Lock()
	former := r.entries[secret]
	delete(r.entries, secret)
	r.mu.Unlock()
	r.silent.Forget(secret)
	former.close()
}

func (e *entry) close() {
	if e != nil && e.conn != nil {
		e.conn.http.CloseIdleConnections()
	}
}

func (r *Registry) isDown(e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.down != nil
}

// open is what is known of a cluster that can be probed, with the questions that the
// probe will answer.
func (r *Registry) open(secret types.NamespacedName) (e *entry, questions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e = r.entries[secret]; e == nil || e.conn == nil {
		return nil, nil
	}
	for question, answered := range e.asked {
		if !answered {
			questions = append(questions, question)
		}
	}
	return e, questions
}

// note notes the result of a probe. It returns true if subscribers must be notified.
func (r *Registry) note(secret types.NamespacedName, e *entry, questions []string, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[secret] != e {
		return false // there is another kubeconfig by now
	}
	was := e.proven && e.down == nil
	switch {
	case err == nil:
		e.proven, e.down, e.answered = true, nil, r.options.Now()
		for _, question := range questions {
			e.asked[question] = true
		}
		return !was || len(questions) > 0
	case e.down == nil:
		e.down = &UnreachableError{Since: r.options.Now(), Reason: err.Error()}
		return true
	default:
		return false
	}
}

// Silent is what is said of a cluster that does not answer, before the reason.
const Silent = "the cluster does not answer"

// Error implements error.
func (e *UnreachableError) Error() string { return Silent + ": " + e.Reason }

func (r *Registry) notify(secret types.NamespacedName) {
	r.mu.Lock()
	subscribers := r.subscribers
	r.mu.Unlock()
	for _, f := range subscribers {
		f(secret)
	}
}

func (r *Registry) probe(secret types.NamespacedName) { r.queue.Add(secret) }
