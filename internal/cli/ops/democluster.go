package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

const (
	// demoOwner is the field manager of the kinds that the demo brings along.
	demoOwner = "spillway-demo"
	// tidyTimeout is how long the demo may take to remove what it made.
	tidyTimeout = 2 * time.Minute
	// managerStop is how long the demo's manager may take to end.
	managerStop = 10 * time.Second
)

// guest is a demo on a cluster of the user's, and what it has made there.
type guest struct {
	run       *demoRun
	config    *rest.Config
	client    client.Client
	namespace string
	// kinds are those that it brought along, as the API server has them.
	kinds []*unstructured.Unstructured
	// pins is the policy that it brought along.
	pins []client.Object
	// stop ends the manager, and waits until it has ended.
	stop func()
}

// onCluster plays on a cluster of the user's, and leaves nothing there.
func (r *demoRun) onCluster(ctx context.Context) error {
	cfg, err := r.cluster.RESTConfig()
	if err != nil {
		return err
	}
	c, err := connect(cfg)
	if err != nil {
		return err
	}
	g := &guest{run: r, config: cfg, client: c, namespace: "spillway-demo-" + strconv.FormatInt(r.env.Now().Unix(), 36), stop: func() {}}
	err = g.bringKinds(ctx)
	if err != nil && len(g.kinds) == 0 {
		return err // nothing was made yet
	}
	if err == nil {
		g.pins, err = bringPins(ctx, cfg, g.namespace)
	}
	if err == nil {
		err = g.play(ctx)
	}
	return demoError(ctx, err, g.tidy(ctx), "the demo removed what it made on the cluster")
}

// play tells the story, which ends early if the manager does.
func (g *guest) play(ctx context.Context) error {
	_, _ = fmt.Fprintf(g.run.env.Out, "on the cluster at %s, in namespace %s\n", g.config.Host, g.namespace)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := g.run.tell(ctx, &stage{
		config: g.config, kubeconfig: g.run.cluster.Kubeconfig, namespace: g.namespace, pins: g.pins,
		start: func(path string, args []string) error {
			return g.startManager(ctx, cancel, path, append(args, "--namespaces="+g.namespace)...)
		},
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause //nolint:wrapcheck // it is an error of this file, or the interruption
	}
	return err
}

// startManager runs the manager until the demo ends; ended is called if it ends earlier.
func (g *guest) startManager(ctx context.Context, ended context.CancelCauseFunc, path string, args ...string) error {
	said := &lastLine{}
	process := exec.CommandContext(context.WithoutCancel(ctx), path, args...) //nolint:gosec // this program itself, which is stopped below
	process.Stderr = said
	if err := process.Start(); err != nil {
		return err //nolint:wrapcheck // the caller says what was started
	}
	done := make(chan struct{})
	go func() {
		_ = process.Wait() // what it said last is more than its exit code
		ended(fmt.Errorf("the manager of the demo has ended: %s", said))
		close(done)
	}()
	g.stop = func() {
		_ = process.Process.Signal(os.Interrupt) // it may have ended already
		late := clock.RealClock{}.NewTimer(managerStop)
		defer late.Stop()
		select {
		case <-done:
		case <-late.C():
			_ = process.Process.Kill()
			<-done
		}
	}
	return nil
}

// bringKinds makes the kinds known that zones and policies need and the cluster lacks. Who may
// not do that sees the demo without these chapters.
func (g *guest) bringKinds(ctx context.Context) error {
	kinds, err := manifests.KindsOf([]string{manager.RingConfig, manager.RingZones})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		switch err := g.client.Create(ctx, kind, client.FieldOwner(demoOwner)); {
		case apierrors.IsAlreadyExists(err):
		case apierrors.IsForbidden(err):
			return nil // the story says what it leaves out
		case err != nil:
			return fmt.Errorf("make kind %s known: %w", kind.GetName(), err)
		default:
			g.kinds = append(g.kinds, kind)
		}
	}
	return awaitKinds(ctx, g.config)
}

// tidy removes what the demo has made, also after the user has lost patience.
func (g *guest) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	g.stop()
	_, _ = fmt.Fprintf(g.run.env.Out, "\nremoving namespace %s\n", g.namespace)
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: g.namespace}}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := g.client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove namespace %s: %w", g.namespace, err)
	}
	var errs []error
	for _, obj := range g.pins {
		if err := g.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", obj.GetName(), err))
		}
	}
	for _, kind := range g.kinds {
		errs = append(errs, g.removeKind(ctx, kind))
	}
	return errors.Join(errs...)
}

// removeKind takes a kind away again, unless another client has begun to use it meanwhile: with
// a kind all its objects go.
func (g *guest) removeKind(ctx context.Context, kind *unstructured.Unstructured) error {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(kind.GroupVersionKind())
	err := g.client.Get(ctx, client.ObjectKeyFromObject(kind), now)
	if apierrors.IsNotFound(err) || (err == nil && now.GetUID() != kind.GetUID()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove kind %s: %w", kind.GetName(), err)
	}
	used, err := g.isUsed(ctx, now)
	if err != nil {
		return err
	}
	if used {
		_, _ = fmt.Fprintf(g.run.env.Out, "kind %s stays: it is used by others now\n", kind.GetName())
		return nil
	}
	uid, version := now.GetUID(), now.GetResourceVersion()
	if err := g.client.Delete(ctx, now, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove kind %s: %w", kind.GetName(), err)
	}
	_, _ = fmt.Fprintf(g.run.env.Out, "removing kind %s\n", kind.GetName())
	return nil
}

// isUsed is true if another one has written to a kind, such as install, or if it has objects
// in other namespaces.
func (g *guest) isUsed(ctx context.Context, kind *unstructured.Unstructured) (bool, error) {
	ours := func(f metav1.ManagedFieldsEntry) bool { return f.Manager == demoOwner || f.Subresource == "status" }
	if slices.ContainsFunc(kind.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return !ours(f) }) {
		return true, nil
	}
	gvk, err := servedKind(kind)
	if err != nil {
		return true, err
	}
	objects := kube.MetadataList(gvk)
	if err := g.client.List(ctx, objects); err != nil {
		return true, fmt.Errorf("look for objects of kind %s: %w", kind.GetName(), err)
	}
	return slices.ContainsFunc(objects.Items, func(o metav1.PartialObjectMetadata) bool { return o.Namespace != g.namespace }), nil
}

// servedKind is the kind that a definition defines, in its first version.
func servedKind(definition *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	group, _, noGroup := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, noKind := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, noVersions := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err := errors.Join(noGroup, noKind, noVersions); err != nil || len(versions) == 0 {
		return schema.GroupVersionKind{}, fmt.Errorf("definition %s has no version: %w", definition.GetName(), err)
	}
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, nil
}

// awaitKinds waits until the API server serves the kinds that the story needs.
func awaitKinds(ctx context.Context, cfg *rest.Config) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { //nolint:wrapcheck // says of itself what it is
		for _, kind := range []string{"RolloutGroup", policy.Kind} {
			if known, err := knowsKind(cfg, kind); !known || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// demoError is how a demo ends: with its error, or, if it was interrupted, with what has
// become of what it made. That something stays is said in any case.
func demoError(ctx context.Context, err, stays error, tidied string) error {
	if ctx.Err() != nil && stays == nil {
		return errors.New("interrupted: " + tidied)
	}
	return errors.Join(err, stays)
}

// lastLine is a writer that keeps the last line.
type lastLine struct{ line string }

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(p)), "\n")
	l.line = lines[len(lines)-1]
	return len(p), nil
}

// String is that line.
func (l *lastLine) String() string {
	if l.line == "" {
		return "it said nothing"
	}
	return l.line
}
