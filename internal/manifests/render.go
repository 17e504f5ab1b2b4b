package manifests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/charts"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
)

// Parts that several rings share: gates are measured, and messages are sent about rollouts.
const (
	Gates  = "gates"
	Notify = "notify"
)

// kindsTemplate has the CustomResourceDefinitions.
const kindsTemplate = "kinds"

// templates are those of the chart in the order of applying: what is referred to first, and webhooks
// after what serves them. Those in the folder helm are for Helm alone.
var templates = []string{
	"serviceaccount", "permissions", "leader-election", "packages", "metrics-permissions", "networkpolicy", "poddisruptionbudget",
	"deployment", "metrics", "dashboard", "restrictions", "records", "roles", "webhooks", "admission", "pins",
}

// Objects returns all objects to apply, in order.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	if o.Values.CRDs {
		kinds, err := o.render(kindsTemplate)
		if err != nil {
			return nil, err
		}
		objects = kinds
	}
	if o.OnlyKinds {
		return objects, nil
	}
	others, err := o.render(templates...)
	if err != nil {
		return nil, err
	}
	return slices.Concat(objects, []*unstructured.Unstructured{namespace(&o)}, others), nil
}

// namespace is the one of the manager, which helm install --create-namespace makes.
func namespace(o *Options) *unstructured.Unstructured {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "spec": map[string]any{}}}
	labels := InstalledLabels(o.Namespace)
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	ns.SetName(o.Namespace)
	ns.SetLabels(labels)
	return ns
}

// render returns the objects of some templates.
func (o *Options) render(templates ...string) ([]*unstructured.Unstructured, error) {
	values, err := o.values()
	if err != nil {
		return nil, err
	}
	c, err := chartOf(o.Version, templates)
	if err != nil {
		return nil, err
	}
	release := map[string]any{"Name": name, "Namespace": o.Namespace, "Service": installer, "IsInstall": true, "Revision": 1}
	rendered, err := engine.Render(c, common.Values{"Values": values, "Release": release, "Capabilities": common.DefaultCapabilities})
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, template := range templates {
		more, err := read(rendered[name+"/"+file(template)])
		if err != nil {
			return nil, fmt.Errorf("template %s of the chart: %w", template, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func file(template string) string { return "templates/" + template + ".yaml" }

// generated are the files that templates read.
var generated = sync.OnceValues(func() (files []*common.File, err error) {
	err = fs.WalkDir(charts.Files, "spillway/generated", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := charts.Files.ReadFile(path)
		files = append(files, &common.File{Name: strings.TrimPrefix(path, "spillway/"), Data: content})
		return err //nolint:wrapcheck // it names the file
	})
	return files, err //nolint:wrapcheck // the same
})

// chartOf returns the chart with some of its templates.
func chartOf(version string, templates []string) (*chart.Chart, error) {
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, AppVersion: version}}
	names := []string{"templates/_helpers.tpl"}
	for _, template := range templates {
		names = append(names, file(template))
	}
	for _, name := range names {
		content, err := charts.Files.ReadFile("spillway/" + name)
		if err != nil {
			return nil, fmt.Errorf("read the chart: %w", err)
		}
		c.Templates = append(c.Templates, &common.File{Name: name, Data: content})
	}
	var err error
	c.Files, err = generated()
	return c, err
}

// read returns the objects in YAML, without the annotation by which Helm keeps them.
func read(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read it: %w", err)
		}
		content, err := yaml.YAMLToJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("read it: %w", err)
		}
		if string(content) == "null" {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("read it: %w", err)
		}
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "helm.sh/resource-policy")
		objects = append(objects, obj)
	}
}

// CustomKinds returns the CustomResourceDefinitions of all rings.
func CustomKinds() ([]*unstructured.Unstructured, error) {
	return KindsOf(append(manager.Rings(), manager.RingFleet, manager.RingAssemblage))
}

// KindsOf returns the CustomResourceDefinitions of some rings.
func KindsOf(rings []string) ([]*unstructured.Unstructured, error) {
	o := Default(rings...)
	o.OnlyKinds = true
	return Objects(o)
}

// Rules returns the permissions that the rings need, in all namespaces or in those that are watched.
func Rules(rings []string, watched ...string) ([]rbacv1.PolicyRule, error) {
	o := Default(rings...)
	o.Values.WatchNamespaces = watched
	return o.RulesOfRole(name)
}

// PinRules returns the permissions that the config ring needs where pins are on, beside its own.
func PinRules(n pin.Namespaces) ([]rbacv1.PolicyRule, error) {
	o := Default()
	o.Values.SetPins(n)
	return o.RulesOfRole(o.Values.PinRole())
}

// RulesOfRole returns the permissions of the first role of a name that is installed.
func (o *Options) RulesOfRole(name string) ([]rbacv1.PolicyRule, error) {
	objects, err := o.render("permissions", "packages", "webhooks", "pins")
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		if strings.HasSuffix(obj.GetKind(), "Role") && obj.GetName() == name {
			role := rbacv1.ClusterRole{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role)
			return role.Rules, err //nolint:wrapcheck // of our own chart
		}
	}
	return nil, fmt.Errorf("role %s is not installed", name)
}

// RulesOf returns the permissions that a ring, or a part of one, needs.
func RulesOf(part string) ([]rbacv1.PolicyRule, error) {
	role := rbacv1.ClusterRole{}
	raw, err := charts.Files.ReadFile("spillway/generated/" + part + "/role.yaml")
	if err != nil {
		return nil, fmt.Errorf("no permissions are known of ring %q: %w", part, err)
	}
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return nil, fmt.Errorf("generated role of ring %q: %w", part, err)
	}
	return role.Rules, nil
}
