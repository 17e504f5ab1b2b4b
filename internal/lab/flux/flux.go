package flux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

// assetsVariable names a folder with what hack/flux/build.sh would build.
const assetsVariable = "SPILLWAY_FLUX_ASSETS"

// fieldOwner is who installs kinds and plays source-controller.
const fieldOwner = client.FieldOwner("source-controller")

// Assets is what Flux consists of: programs, and kinds.
type Assets struct{ dir string }

// Find finds the assets, or builds them, telling of the progress.
func Find(ctx context.Context, progress io.Writer) (Assets, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return Assets{dir}, nil
	}
	dir, err := controlplane.Build(ctx, "flux", progress)
	return Assets{dir}, err
}

// Run runs kustomize-controller and helm-controller against a control plane, with which they
// end.
func (a Assets) Run(cp *controlplane.ControlPlane) error {
	return errors.Join(
		a.run(cp, "kustomize-controller"),
		a.run(cp, "helm-controller", "--interval-jitter-percentage", "0"),
	)
}

func (a Assets) run(cp *controlplane.ControlPlane, controller string, flags ...string) error {
	temporary := filepath.Join(cp.Dir, controller)
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return fmt.Errorf("folder of %s: %w", controller, err)
	}
	return cp.RunWith([]string{"KUBECONFIG=" + cp.Kubeconfig(), "TMPDIR=" + temporary, "RUNTIME_NAMESPACE=default"},
		filepath.Join(a.dir, controller), append([]string{
			"--metrics-addr", "0", "--health-addr", "0", "--requeue-dependency", "1s", "--http-retry", "1",
			"--kube-api-qps", "500", "--kube-api-burst", "1000",
		}, flags...)...)
}

// Install installs the kinds of Flux, and Cluster API's Cluster, but those with such a word in
// their names, and waits until they are served.
func (a Assets) Install(ctx context.Context, config *rest.Config, but ...string) error {
	files, err := filepath.Glob(filepath.Join(a.dir, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("there are no kinds in %s", a.dir), err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("install kinds: %w", err)
	}
	for _, file := range files {
		if slices.ContainsFunc(but, func(word string) bool { return strings.Contains(filepath.Base(file), word) }) {
			continue
		}
		kind, err := install(ctx, c, file)
		if err != nil {
			return err
		}
		if err := waitServed(ctx, c, kind); err != nil {
			return err
		}
	}
	return nil
}

// install applies the CustomResourceDefinition in a file.
func install(ctx context.Context, c client.Client, file string) (kind schema.GroupKind, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return kind, fmt.Errorf("kind: %w", err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		return kind, fmt.Errorf("%s: %w", file, err)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), fieldOwner, client.ForceOwnership); err != nil {
		return kind, fmt.Errorf("install %s: %w", crd.GetName(), err)
	}
	kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return kind, nil
}

// waitServed waits until objects of the kind can be listed.
func waitServed(ctx context.Context, c client.Client, kind schema.GroupKind) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		mapping, err := c.RESTMapper().RESTMapping(kind)
		if apimeta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err //nolint:wrapcheck // wrapped below
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		return c.List(ctx, list, client.Limit(1)) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s to be served: %w", kind, err)
	}
	return nil
}
