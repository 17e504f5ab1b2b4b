// Package chart_test compares what the chart renders with what the command installs.
package chart_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// table are values, from none to all, of which another test asks an API server.
func table(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]map[string]any
	if err := yaml.UnmarshalStrict(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for name, of := range parsed {
		values[name] = text(of) // JSON is YAML
	}
	return values
}

// What the chart renders is what the command installs, object by object.
func TestSame(t *testing.T) {
	program := compile(t)
	chart, err := loader.Load(filepath.Join(root, "charts", "spillway"))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range table(t) {
		t.Run(name, func(t *testing.T) {
			installed := installed(t, program, values)
			rendered, err := render(chart, values)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range installed {
				if got := rendered[key]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s\nthe chart: %s\ninstall:   %s", key, text(got), text(want))
				}
			}
			for key := range rendered {
				if installed[key] == nil {
					t.Errorf("%s is only in the chart", key)
				}
			}
		})
	}
}

// Values that are not known, and some that are wrong, are refused by chart and command.
func TestRefused(t *testing.T) {
	program := compile(t)
	chart, err := loader.Load(filepath.Join(root, "charts", "spillway"))
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{`replica: 3`, `rings: [none]`, `webhooks: {certificateSource: vault}`, `replicas: many`, "rings: [zones]\npinNamespaces: [shop]", "dashboard: {enabled: true}", "watchNamespaces: [shop]\npinNamespaces: [payments]", "pinBy: magic", "pinNamespaces: ['*', shop]", "watchNamespaces: [shop]\npinNamespaceSelector: {matchLabels: {team: shop}}", "pinNamespaces: [shop]\npinNamespaceSelector: {matchLabels: {team: shop}}", "pinNamespaceSelector: {matchExpressions: [{key: team, operator: Gt, values: ['1']}]}", "pinNamespaces: [shop]\npinBy: webhook\nwebhooks: {enabled: false}"} {
		if _, err := render(chart, values); err == nil {
			t.Errorf("the chart takes %s", values)
		}
		if out, err := export(program, values); err == nil || !bytes.HasPrefix(out, []byte("error: ")) {
			t.Errorf("the command takes %s: %s", values, out)
		}
	}
}

// Pins by policies need kinds that an older API server does not have.
func TestPinsNeedTheirKinds(t *testing.T) {
	chart, err := loader.Load(filepath.Join(root, "charts", "spillway"))
	if err != nil {
		t.Fatal(err)
	}
	const pins = "pinNamespaces: [shop]"
	if _, err := renderOn("v1.35.4", chart, pins); err == nil || !strings.Contains(err.Error(), "pinBy: policy needs Kubernetes 1.36, and this is v1.35.4") {
		t.Errorf("on Kubernetes 1.35 the chart says: %v", err)
	}
	for kubernetes, values := range map[string]string{"v1.36.0": pins, "v1.30.0": pins + "\npinBy: webhook"} {
		if _, err := renderOn(kubernetes, chart, values); err != nil {
			t.Errorf("on Kubernetes %s: %v", kubernetes, err)
		}
	}
}

func compile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spillway")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-X github.com/spillway-dev/spillway/internal/cli/command.Version=v0.0.0", "-o", file, "./cmd/spillway")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func export(program, values string) ([]byte, error) {
	cmd := exec.Command(program, "install", "--export", "-n", "system", "--values=-")
	cmd.Stdin, cmd.Env = strings.NewReader(values), append(os.Environ(), "KUBECONFIG=/dev/null")
	return cmd.CombinedOutput()
}

func installed(t *testing.T, program, values string) map[string]any {
	t.Helper()
	out, err := export(program, values)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	objects := map[string]any{}
	if err := collect(objects, string(out)); err != nil {
		t.Fatal(err)
	}
	delete(objects, "Namespace//system") // helm install --create-namespace makes it
	return objects
}

func render(chart *v2.Chart, values string) (map[string]any, error) {
	return renderOn("v1.37.0", chart, values)
}

// renderOn renders the chart for a version of Kubernetes.
func renderOn(kubernetes string, chart *v2.Chart, values string) (map[string]any, error) {
	on := common.DefaultCapabilities.Copy()
	on.KubeVersion = common.KubeVersion{Version: kubernetes}
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, parsed, common.ReleaseOptions{Name: "any", Namespace: "system", IsInstall: true, Revision: 1}, on)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{}
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, "/uninstall.yaml") {
			if err := collect(objects, content); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, content)
			}
		}
	}
	return objects, nil
}

// collect reads objects, without what the two write in different ways: who manages them,
// what Helm keeps, and what is empty.
func collect(objects map[string]any, manifests string) error {
	for part := range strings.SplitSeq("\n"+manifests, "\n---") {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(part), &obj); err != nil {
			return err
		}
		if obj == nil {
			continue
		}
		metadata, ok := obj["metadata"].(map[string]any)
		if !ok {
			return errors.New("an object without metadata")
		}
		if labels, ok := metadata["labels"].(map[string]any); ok {
			delete(labels, "app.kubernetes.io/managed-by")
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "helm.sh/resource-policy")
		}
		key := fmt.Sprintf("%v/%v/%v", obj["kind"], orEmpty(metadata["namespace"]), metadata["name"])
		if objects[key] != nil {
			return fmt.Errorf("%s exists twice", key)
		}
		objects[key] = pruned(obj)
	}
	return nil
}

func orEmpty(value any) any {
	if value == nil {
		return ""
	}
	return value
}

// pruned is a value without what is empty, and with the names in roles in one order.
func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if names, ok := v["resourceNames"].([]any); ok {
			slices.SortFunc(names, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		}
		for key, of := range v {
			if of = pruned(of); of == nil {
				delete(v, key)
			} else {
				v[key] = of
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			if of := pruned(v[i]); of != nil { // an empty element means something
				v[i] = of
			}
		}
		if len(v) == 0 {
			return nil
		}
	}
	return value
}

func text(value any) string {
	raw, _ := json.Marshal(value) //nolint:errchkjson // it was read from JSON or YAML
	return string(raw)
}
