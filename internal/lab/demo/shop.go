package demo

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/examples"
	"github.com/spillway-dev/spillway/internal/config"
)

// startDelay is how long a simulated kubelet takes to start a Pod.
const startDelay = "600ms"

// owner is the field manager of the demo's user.
const owner = "demo-user"

// applyShop applies the manifests of examples/shop, the config first.
func (s *story) applyShop(ctx context.Context) error {
	names := []string{"config", "deployments", "statefulset", "daemonset"}
	if s.Zones {
		names = append(names, "zones")
	}
	for _, name := range names {
		raw, err := fs.ReadFile(examples.Shop, "shop/"+name+".yaml")
		if err != nil {
			return fmt.Errorf("manifests of the shop: %w", err)
		}
		for doc := range strings.SplitSeq(string(raw), "\n---\n") {
			if err := s.apply(ctx, doc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *story) apply(ctx context.Context, doc string) error {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
		return fmt.Errorf("manifests of the shop: %w", err)
	}
	obj.SetNamespace(s.Namespace)
	if template, ok, _ := unstructured.NestedMap(obj.Object, "spec", "template"); ok && s.Simulated && template != nil {
		err := unstructured.SetNestedField(obj.Object, startDelay, "spec", "template", "metadata", "annotations", "testenv.spillway.dev/ready-after")
		if err != nil {
			return fmt.Errorf("slow down %s: %w", obj.GetName(), err)
		}
	}
	if err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(owner)); err != nil {
		return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// applyEdits does what the user of the story does.
func (s *story) applyEdits(ctx context.Context) error {
	for _, edit := range []struct {
		obj   client.Object
		patch string
	}{
		{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"data":{"LOG_LEVEL":"debug"}}`},
		{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "database"}}, `{"stringData":{"password":"battery-staple"}}`},
	} {
		edit.obj.SetNamespace(s.Namespace)
		err := s.client.Patch(ctx, edit.obj, client.RawPatch(types.MergePatchType, []byte(edit.patch)), client.FieldOwner(owner))
		if err != nil {
			return fmt.Errorf("edit %s: %w", edit.obj.GetName(), err)
		}
	}
	return nil
}

// madeWrites is what the manager says of itself: how many writes to workloads
// it has made since it was started.
func (s *story) madeWrites(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.MetricsURL, nil)
	if err != nil {
		return 0, fmt.Errorf("metrics of the manager: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics of the manager: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	made := 0
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		series, value, ok := strings.Cut(lines.Text(), `,result="made"} `)
		if !ok || !strings.HasPrefix(series, config.WritesMetric+"{") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metrics of the manager: %w", err)
		}
		made += int(n)
	}
	if made == 0 {
		return 0, errNoWrites
	}
	return made, nil
}
