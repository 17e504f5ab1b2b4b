// Package kustomize writes a base and overlays, from what the program itself installs.
package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Export prints what is installed for values, as spillway install --export does.
type Export func(values string) ([]byte, error)

// Overlay is a variant of the base.
type Overlay struct {
	Name string
	// About says what it is for.
	About string
	// Values are what the same installation has in a file of values.
	Values string
}

// Overlays are all variants.
func Overlays() []Overlay {
	return []Overlay{
		{"hub", "A hub of a fleet: also the ring fleet.", "rings: [config, zones, plans, fleet]\n"},
		{"cluster", "A cluster of a fleet: also the ring assemblage.", "rings: [config, zones, plans, assemblage]\n"},
		{"cert-manager", "The certificate of the webhooks comes from cert-manager.", "webhooks: {certificateSource: cert-manager}\n"},
		{"without-webhooks", "No webhooks, for API servers that cannot call into the cluster.", "webhooks: {enabled: false}\n"},
		{"package-kinds", "The ring plans may apply the kinds that most packages consist of, Secrets and workloads among them.", "packageKinds: true\n"},
	}
}

// Files are a base, which is what is installed without values, and an overlay for each
// variant, which changes what differs and nothing else.
func Files(export Export) (map[string][]byte, error) {
	raw, err := export("")
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	base, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	files := map[string][]byte{"base/spillway.yaml": raw}
	if err := write(files, "base/kustomization.yaml", "What spillway install installs.", kustomization("spillway.yaml")); err != nil {
		return nil, err
	}
	for _, o := range Overlays() {
		raw, err := export(o.Values)
		if err != nil {
			return nil, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		want, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		if err := o.write(files, base, want); err != nil {
			return nil, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
	}
	return files, nil
}

// object is one that is installed.
type object map[string]any

func (o object) metadata() map[string]any {
	of, _ := o["metadata"].(map[string]any)
	return of
}

func (o object) key() string {
	return fmt.Sprintf("%v %v %v %v", o["apiVersion"], o["kind"], o.metadata()["namespace"], o.metadata()["name"])
}

// parse reads objects in their order.
func parse(raw []byte) ([]object, error) {
	var objects []object
	for part := range strings.SplitSeq("\n"+string(raw), "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if o == nil {
			continue
		}
		if o.metadata() == nil {
			return nil, errors.New("an object has no metadata")
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func kustomization(resources ...string) map[string]any {
	return map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
}

func (o Overlay) write(files map[string][]byte, base, want []object) error {
	folder := "overlays/" + o.Name + "/"
	resources, patches, more := []string{"../../base"}, []any{}, ""
	wanted := map[string]object{}
	for _, obj := range want {
		wanted[obj.key()] = obj
	}
	known := map[string]bool{}
	for _, obj := range base {
		known[obj.key()] = true
		patch, err := change(obj, wanted[obj.key()])
		if err != nil {
			return err
		}
		if patch != nil {
			patches = append(patches, patch)
		}
	}
	for _, obj := range want {
		if known[obj.key()] {
			continue
		}
		raw, err := yaml.Marshal(obj)
		if err != nil {
			return fmt.Errorf("write an object: %w", err)
		}
		more += "---\n" + string(raw)
	}
	if more != "" {
		resources = append(resources, "more.yaml")
		files[folder+"more.yaml"] = []byte(more)
	}
	k := kustomization(resources...)
	if len(patches) > 0 {
		k["patches"] = patches
	}
	return write(files, folder+"kustomization.yaml", o.About, k)
}

func write(files map[string][]byte, name, about string, content any) error {
	raw, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	files[name] = append([]byte("# "+about+"\n"), raw...)
	return nil
}

// change is the patch that makes one object of another: it replaces whole fields, so that
// nothing is merged. Nil if they are equal.
func change(from, to object) (map[string]any, error) {
	group, kindVersion, found := strings.Cut(fmt.Sprint(from["apiVersion"]), "/")
	if !found {
		group, kindVersion = "", group
	}
	target := map[string]any{"group": group, "version": kindVersion, "kind": from["kind"], "name": regexp.QuoteMeta(fmt.Sprint(from.metadata()["name"]))}
	if namespace := from.metadata()["namespace"]; namespace != nil {
		target["namespace"] = namespace
	}
	if to == nil {
		gone, err := yaml.Marshal(map[string]any{"$patch": "delete", "apiVersion": from["apiVersion"], "kind": from["kind"], "metadata": map[string]any{
			"name": from.metadata()["name"], "namespace": from.metadata()["namespace"],
		}})
		if err != nil {
			return nil, fmt.Errorf("write a patch: %w", err)
		}
		return map[string]any{"target": target, "patch": string(gone)}, nil
	}
	steps := slices.Concat(replace("/metadata/", from.metadata(), to.metadata()), replace("/", from, to, "metadata"))
	if len(steps) == 0 {
		return nil, nil //nolint:nilnil // there is no patch, which is no mistake
	}
	patch, err := yaml.Marshal(steps)
	if err != nil {
		return nil, fmt.Errorf("write a patch: %w", err)
	}
	return map[string]any{"target": target, "patch": string(patch)}, nil
}

// replace are the steps by which fields become others.
func replace(path string, from, to map[string]any, except ...string) []any {
	var steps []any
	for _, field := range slices.Sorted(maps.Keys(from)) {
		if _, ok := to[field]; !ok && !slices.Contains(except, field) {
			steps = append(steps, map[string]any{"op": "remove", "path": path + escape(field)})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(to)) {
		if !reflect.DeepEqual(from[field], to[field]) && !slices.Contains(except, field) {
			steps = append(steps, map[string]any{"op": "add", "path": path + escape(field), "value": to[field]})
		}
	}
	return steps
}

func escape(field string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(field) }
