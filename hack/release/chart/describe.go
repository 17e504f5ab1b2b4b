package chart

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/hack/release/source"
)

// describe writes into Chart.yaml what only a release knows: its version, and for Artifact Hub
// the image, whether it is for production, and the kinds. The annotations are those of
// https://artifacthub.io/docs/topics/annotations/helm/.
func describe(content []byte, s source.Source, image string) ([]byte, error) {
	var m v2.Metadata
	if err := yaml.UnmarshalStrict(content, &m); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	kinds, err := kinds(s.Root)
	if err != nil {
		return nil, err
	}
	m.Version, m.AppVersion = s.Plain(), s.Version
	m.Annotations["artifacthub.io/prerelease"] = strconv.FormatBool(semver.Prerelease(s.Version) != "")
	for key, list := range map[string]any{
		"images": []map[string]string{{"name": name, "image": image}}, "crds": kinds,
	} {
		text, err := yaml.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", key, err)
		}
		m.Annotations["artifacthub.io/"+key] = string(text)
	}
	if content, err = yaml.Marshal(m); err != nil {
		return nil, fmt.Errorf("write it: %w", err)
	}
	return content, nil
}

// kind is one as Artifact Hub lists it.
type kind struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema struct{ Description string }
			}
		}
	}
}

// kinds are those that the chart installs, of all rings.
func kinds(root string) ([]kind, error) {
	files, err := filepath.Glob(filepath.Join(root, "charts", "spillway", "generated", "*", "*_*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("look for kinds: %w", err)
	}
	var found []kind
	for _, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // of the repository
		if err != nil {
			return nil, fmt.Errorf("read a kind: %w", err)
		}
		var crd definition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		for _, v := range crd.Spec.Versions {
			said := strings.Join(strings.Fields(v.Schema.OpenAPIV3Schema.Description), " ")
			found = append(found, kind{crd.Spec.Names.Kind, v.Name, crd.Metadata.Name, crd.Spec.Names.Kind, said})
		}
	}
	slices.SortFunc(found, func(a, b kind) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
