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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/examples"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/metrics"
)

// startDelay is how long a simulated kubelet takes to start a Pod. Those of the prices are
// started before that by [story.startKubelet], as long as the demo runs.
const startDelay, pricesDelay = "600ms", "1m"

// owner is the field manager of the demo's user.
const owner = "demo-user"

// applyShop applies the manifests of examples/shop, the config first.
func (s *story) applyShop(ctx context.Context) error {
	names := []string{"shop/config", "shop/deployments", "shop/statefulset", "shop/daemonset"}
	if s.Zones {
		names = append(names, "shop/zones")
	}
	for _, name := range names {
		if err := s.applyFile(ctx, name, startDelay); err != nil {
			return err
		}
	}
	if !s.Pins {
		return nil
	}
	switch err := s.awaitPins(ctx); {
	case apierrors.IsForbidden(err): // another policy of the cluster refuses the Pod that asks
		s.Pins = false
		return nil
	case err != nil:
		return err
	}
	return s.applyFile(ctx, "prices/prices", pricesDelay)
}

func (s *story) applyFile(ctx context.Context, name, delay string) error {
	raw, err := fs.ReadFile(examples.Shop, name+".yaml")
	if err != nil {
		return fmt.Errorf("manifests of the shop: %w", err)
	}
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		if err := s.apply(ctx, doc, delay); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) apply(ctx context.Context, doc, delay string) error {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
		return fmt.Errorf("manifests of the shop: %w", err)
	}
	obj.SetNamespace(s.Namespace)
	if template, ok, _ := unstructured.NestedMap(obj.Object, "spec", "template"); ok && s.Simulated && template != nil {
		err := unstructured.SetNestedField(obj.Object, delay, "spec", "template", "metadata", "annotations", "testenv.spillway.dev/ready-after")
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
	if err := s.patch(ctx, &corev1.ConfigMap{}, "shop", `{"data":{"LOG_LEVEL":"debug"}}`); err != nil {
		return err
	}
	return s.patch(ctx, &corev1.Secret{}, "database", `{"stringData":{"password":"battery-staple"}}`)
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
		if !ok || !strings.HasPrefix(series, metrics.ConfigWritesName+"{") || strings.Contains(series, `act="`+decision.ActDescribe+`"`) {
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
