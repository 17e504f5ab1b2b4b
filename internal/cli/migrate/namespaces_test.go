package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// follower is a former controller of which a flag says where it acts.
type follower struct {
	name, image, annotation string
	// leaving is the flag by which it leaves some namespaces alone and acts in others, and leaves reads it.
	leaving func(these, others string) string
	leaves  func(arg, namespace string) bool
	// acts begins in a namespace, and has is true of a workload that it has rolled for a content.
	acts func(w *world, namespace string) func(context.Context) error
	has  func(*appsv1.Deployment, *corev1.ConfigMap) bool
	// with are arguments of spillway install, as spillway migrate prints them.
	with []string
}

var followers = []follower{
	{
		name: "reloader", image: "ghcr.io/stakater/reloader:v1.4.21", annotation: "reloader.stakater.com/auto", with: []string{"--reloader-annotations"},
		leaving: func(these, _ string) string { return "--namespaces-to-ignore=" + these },
		leaves:  func(arg, namespace string) bool { return slices.Contains(valuesOf(arg), namespace) },
		acts:    (*world).reloaderIn,
		has: func(d *appsv1.Deployment, cm *corev1.ConfigMap) bool {
			return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Value == reloaderHash(cm) })
		},
	},
	{
		name: "wave", image: "quay.io/wave-k8s/wave:v0.9.0", annotation: waveAnnotation,
		leaving: func(_, others string) string { return "--namespaces=" + others },
		leaves:  func(arg, namespace string) bool { return !slices.Contains(valuesOf(arg), namespace) },
		acts: func(w *world, namespace string) func(context.Context) error {
			return func(ctx context.Context) error { return w.waveIn(ctx, namespace) }
		},
		has: func(d *appsv1.Deployment, cm *corev1.ConfigMap) bool {
			return d.Spec.Template.Annotations["wave.pusher.com/config-hash"] == waveHash(cm)
		},
	},
}

// valuesOf are those of an argument, separated by commas.
func valuesOf(arg string) []string {
	_, values, _ := strings.Cut(arg, "=")
	return strings.Split(values, ",")
}

// where are the namespaces in which a Pod of a former controller acts.
func (f *follower) where(p *corev1.Pod, all []string) (in []string) {
	for _, namespace := range all {
		if args := p.Spec.Containers[0].Args; len(args) == 0 || !f.leaves(args[0], namespace) {
			in = append(in, namespace)
		}
	}
	return in
}

// districts are namespaces with workloads of which users edit the config, all of one former controller.
type districts struct {
	*world

	former *follower
	spaces []string
	// apps are the workloads of each namespace, and edits is held by who edits there.
	apps  map[string][]string
	edits map[string]*sync.Mutex
	// begun are the names of the Pods of the former controller that have made a pass.
	begun sync.Map
}

// in puts a manifest into a namespace.
func in(namespace, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata: {name:", "metadata: {namespace: "+namespace+", name:")
}

// newDistricts has the former controller run in three namespaces, and each workload rolled by it.
func newDistricts(t *testing.T, f *follower) *districts {
	t.Helper()
	w := newWorld(t)
	w.others = []string{testenv.Namespace(t), testenv.Namespace(t)}
	d := &districts{world: w, former: f, spaces: []string{w.namespace, w.others[0], w.others[1]}, apps: map[string][]string{}, edits: map[string]*sync.Mutex{}}
	for i, namespace := range d.spaces {
		d.edits[namespace] = &sync.Mutex{}
		if i > 0 {
			w.witness(namespace)
		}
		for n := range 3 {
			app := fmt.Sprintf("web-%d-%d", i, n)
			d.apps[namespace] = append(d.apps[namespace], app)
			w.apply(in(namespace, config(app, 0)) + "\n---\n" + in(namespace, workload(app, f.annotation)))
		}
	}
	d.play()
	t.Cleanup(d.uninstall)
	w.apply(formerly(f.name, f.image))
	for namespace, apps := range d.apps {
		for _, app := range apps {
			d.begin(namespace, app)
		}
	}
	explained := w.still()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.explained = explained
	return d
}

// begin edits the config of a workload until the former controller has rolled it for that: it knows no change from before its start.
func (d *districts) begin(namespace, app string) {
	d.t.Helper()
	value := 0
	testenv.Eventually(d.t, func(ctx context.Context) error {
		is, cm, name := &appsv1.Deployment{}, &corev1.ConfigMap{}, client.ObjectKey{Namespace: namespace, Name: app}
		if err := errors.Join(d.client.Get(ctx, name, is), d.client.Get(ctx, name, cm)); err != nil || d.former.has(is, cm) {
			return err
		}
		value++
		return errors.Join(fmt.Errorf("%s is not rolled", app), d.applies(ctx, in(namespace, config(app, value))))
	})
}

// process acts in each namespace, with a memory of its own.
type process map[string]func(context.Context) error

// play plays a process for each Pod of the former controller, from when it is created until it is deleted.
func (d *districts) play() {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan struct{})
	d.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		processes := map[types.UID]process{}
		for ; ctx.Err() == nil; pause(ctx, look) {
			for _, pod := range d.formers(ctx) {
				if processes[pod.UID] == nil {
					processes[pod.UID] = process{}
				}
				if in := d.former.where(&pod, d.spaces); pod.DeletionTimestamp == nil && len(in) > 0 {
					d.pass(ctx, pod.Name, processes[pod.UID], in)
				}
			}
		}
	}()
}

// pass has a process act once.
func (d *districts) pass(ctx context.Context, name string, p process, namespaces []string) {
	d.set(name, true, namespaces...)
	defer d.begun.Store(name, true)
	defer d.set(name, false)
	for _, namespace := range namespaces {
		if p[namespace] == nil {
			p[namespace] = d.former.acts(d.world, namespace)
		}
		if err := p[namespace](ctx); err != nil && ctx.Err() == nil {
			d.sayWrong(name + ": " + err.Error())
		}
	}
}

// formers are the Pods of the former controller, also those that are terminating.
func (d *districts) formers(ctx context.Context) []corev1.Pod {
	pods := &corev1.PodList{}
	if err := d.client.List(ctx, pods, client.InNamespace(d.namespace), client.MatchingLabels{"former": d.former.name}); err != nil && ctx.Err() == nil {
		d.sayWrong(err.Error())
	}
	return pods.Items
}

// leave has the former controller leave some namespaces alone, and waits until its Pods that do not are gone and one acts in the others.
// No user edits meanwhile in those that it keeps: Reloader forgets what changes while it restarts.
func (d *districts) leave(namespaces ...string) {
	d.t.Helper()
	others := slices.DeleteFunc(slices.Clone(d.spaces), func(name string) bool { return slices.Contains(namespaces, name) })
	for _, namespace := range others {
		d.edits[namespace].Lock()
		defer d.edits[namespace].Unlock()
	}
	if len(others) == 0 {
		if err := d.patch(d.former.name, `{"spec":{"replicas":0}}`); err != nil {
			d.t.Fatal(err)
		}
	} else {
		d.apply(formerly(d.former.name, d.former.image, strconv.Quote(d.former.leaving(strings.Join(namespaces, ","), strings.Join(others, ",")))))
	}
	testenv.Eventually(d.t, func(ctx context.Context) error {
		acts := []string(nil)
		for _, pod := range d.formers(ctx) {
			where := d.former.where(&pod, d.spaces)
			if slices.ContainsFunc(where, func(namespace string) bool { return slices.Contains(namespaces, namespace) }) {
				return fmt.Errorf("%s acts in %v", pod.Name, where)
			}
			if _, begun := d.begun.Load(pod.Name); !begun {
				return fmt.Errorf("%s has not begun", pod.Name)
			}
			acts = where
		}
		if !slices.Equal(acts, others) {
			return fmt.Errorf("%s acts in %v, not yet in %v", d.former.name, acts, others)
		}
		return nil
	})
}

// install installs the manager for some namespaces, for all if there are none, and waits until it acts there alone.
func (d *districts) install(namespaces ...string) {
	d.t.Helper()
	args := append([]string{"install", "--rings=config", "--webhooks=false"}, d.former.with...)
	if len(namespaces) > 0 {
		args = append(args, "--watch-namespaces="+strings.Join(namespaces, ","))
	}
	d.command(0, append(args, "--", "--coalesce-window=300ms")...)
	testenv.Eventually(d.t, func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if where, runs := d.acting[manager]; !runs || !slices.Equal(where, namespaces) {
			return fmt.Errorf("the manager acts in %v", where)
		}
		return nil
	})
}

// uninstall removes the manager, for the next test.
func (d *districts) uninstall() {
	out := &testenv.Buffer{}
	args := []string{"spillway", "uninstall", "--kubeconfig=" + testenv.Shared().Kubeconfig()}
	if code := cli.Run(context.Background(), command.Environment{Args: args, Out: out, Err: out, Now: time.Now, Lookup: os.LookupEnv}); code != 0 {
		d.t.Errorf("uninstall: exit code %d: %s", code, out)
	}
}

// during lets a user of each namespace edit one workload after the other while something is done. Each edit is one roll, by the
// former controller or by the manager.
func (d *districts) during(do func()) {
	d.t.Helper()
	stop, users := make(chan struct{}), sync.WaitGroup{}
	for _, namespace := range d.spaces {
		users.Go(func() {
			for n := 0; n == 0 || !isClosed(stop); n++ {
				app := d.apps[namespace][n%len(d.apps[namespace])]
				if err := d.edit(namespace, app); err != nil {
					d.sayWrong(fmt.Sprintf("an edit for %s is lost: %v", app, err))
					return
				}
			}
		})
	}
	do()
	close(stop)
	users.Wait()
	d.mu.Lock()
	want := maps.Clone(d.explained)
	d.mu.Unlock()
	d.settled(want)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// edit changes the config of a workload, and waits until that is rolled.
func (d *districts) edit(namespace, app string) error {
	d.edits[namespace].Lock()
	defer d.edits[namespace].Unlock()
	d.mu.Lock()
	d.explained[app]++
	want := d.explained[app]
	d.mu.Unlock()
	err := d.applies(d.t.Context(), in(namespace, config(app, 1000+want)))
	return errors.Join(err, testenv.Until(d.t.Context(), func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if got := d.rolls()[app]; got != want {
			return fmt.Errorf("%d Pods, want %d", got, want)
		}
		return nil
	}))
}

// TestANamespaceAtATime follows the steps of docs/migrate.md, and gives one namespace back: at no instant do two act in a namespace, no
// Pod is replaced that no edit explains, and no edit is lost.
func TestANamespaceAtATime(t *testing.T) {
	for i := range followers {
		f := &followers[i]
		t.Run(f.name, func(t *testing.T) {
			d := newDistricts(t, f)
			first, second, third := d.spaces[0], d.spaces[1], d.spaces[2]
			d.during(func() {
				d.leave(first)
				d.install(first)
				d.leave(first, second)
				d.install(first, second)
				d.leave(first, second, third)
				d.install()
			})
			d.during(func() {})

			d.install(first, third)
			d.leave(first, third)
			d.during(func() {})
		})
	}
}
