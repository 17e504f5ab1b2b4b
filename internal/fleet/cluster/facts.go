package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// factsParallel bounds how many clusters are asked at a time, factsPatience how long one may take, and
	// factsLength what one may answer.
	factsParallel = 8
	factsPatience = 10 * time.Second
	factsLength   = 1 << 20
)

// Facts are what a cluster serves, as it said at a moment.
type Facts struct {
	At time.Time
	// Problem is why that is not known, empty if it is.
	Problem string
	// Major, Minor and Version are those of its Kubernetes.
	Major, Minor int64
	Version      string
	// APIs has the groups that it serves, with their versions: "apps/v1".
	APIs map[string]bool
}

// FactBook asks clusters what they serve, when that is to be known. The API of a cluster has no watch for it.
type FactBook struct {
	now   func() time.Time
	queue workqueue.TypedInterface[types.NamespacedName]

	mu          sync.Mutex
	facts       map[types.NamespacedName]*Facts
	subscribers []func(secret types.NamespacedName)
}

// NewFactBook returns one in which nothing is known. It asks once it runs.
func NewFactBook(now func() time.Time) *FactBook {
	return &FactBook{
		now: now, facts: map[types.NamespacedName]*Facts{},
		queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: "fleet-facts"}),
	}
}

// Of is what a cluster said last, nil if it was not asked. It is not changed.
func (b *FactBook) Of(secret types.NamespacedName) *Facts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts[secret]
}

// Ask has a cluster asked. Subscribers are called once it is known what it says.
func (b *FactBook) Ask(secret types.NamespacedName) { b.queue.Add(secret) }

// AskAgain has a cluster asked of which it is not known what it serves, though that was asked.
func (b *FactBook) AskAgain(secret types.NamespacedName) {
	if f := b.Of(secret); f != nil && f.Problem != "" {
		b.Ask(secret)
	}
}

// Subscribe has f called whenever a cluster was asked.
func (b *FactBook) Subscribe(f func(secret types.NamespacedName)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = append(b.subscribers, f)
}

// Connects is how clusters are reached: what is wrong with the cluster is the problem.
type Connects func(ctx context.Context, secret types.NamespacedName) (conn *Connection, problem, err error)

// Run asks clusters until the context ends.
func (b *FactBook) Run(connect Connects) manager.RunnableFunc {
	return b.RunWith(func(ctx context.Context, secret types.NamespacedName) *Facts { return factsOf(ctx, connect, secret) })
}

// RunWith is [FactBook.Run] with another way to ask a cluster.
func (b *FactBook) RunWith(ask func(context.Context, types.NamespacedName) *Facts) manager.RunnableFunc {
	return func(ctx context.Context) error {
		var workers sync.WaitGroup
		for range factsParallel {
			workers.Go(func() {
				work(ctx, b.queue, func(ctx context.Context, secret types.NamespacedName) { b.learn(secret, ask(ctx, secret)) })
			})
		}
		<-ctx.Done()
		b.queue.ShutDown()
		workers.Wait()
		return nil
	}
}

// Forget drops what is known of a cluster.
func (b *FactBook) Forget(secret types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.facts, secret)
}

func (b *FactBook) learn(secret types.NamespacedName, f *Facts) {
	f.At = b.now()
	b.mu.Lock()
	b.facts[secret] = f
	subscribers := b.subscribers
	b.mu.Unlock()
	for _, tell := range subscribers {
		tell(secret)
	}
}

// factsOf asks a cluster.
func factsOf(ctx context.Context, connect Connects, secret types.NamespacedName) *Facts {
	conn, problem, err := connect(ctx, secret)
	if err = errors.Join(problem, err); err != nil || conn == nil {
		return &Facts{Problem: reasonOf(err)}
	}
	ctx, cancel := context.WithTimeout(ctx, factsPatience)
	defer cancel()
	is, groups := &version.Info{}, &metav1.APIGroupList{}
	if err := errors.Join(conn.read(ctx, "version", is), conn.read(ctx, "apis", groups)); err != nil {
		return &Facts{Problem: err.Error()}
	}
	f := &Facts{Major: number(is.Major), Minor: number(is.Minor), Version: is.GitVersion, APIs: map[string]bool{"v1": true}}
	for i := range groups.Groups {
		for _, v := range groups.Groups[i].Versions {
			f.APIs[v.GroupVersion] = true
		}
	}
	return f
}

func reasonOf(err error) string {
	if err == nil {
		return ErrUnproven.Error()
	}
	return err.Error()
}

// number is that of a version, of which some distributions say "31+".
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimRight(text, "+"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// read reads what the API server has at a path.
func (c *Connection) read(ctx context.Context, path string, into any) error {
	res, err := c.request(ctx, path, "", "application/json")
	if err != nil {
		return errors.New(cause(err))
	}
	defer func() { _ = res.Body.Close() }() // nothing of it matters any more
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("read /%s: %s", path, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, factsLength)).Decode(into); err != nil {
		return fmt.Errorf("read /%s: it is no JSON, or too long", path)
	}
	return nil
}
