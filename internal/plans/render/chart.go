package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	dependencies "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Chart is a Helm chart with the template of its values.
type Chart struct {
	// Name is the file of the archive, Archive its content in base64.
	Name    string `json:"name"`
	Archive string `json:"archive"`
	// Values are the template; its name is ValuesName.
	ValuesName string `json:"valuesName"`
	Values     string `json:"values"`
}

// Objects are those that the chart makes, its CustomResourceDefinitions and hooks among them.
// Helm's library renders it, in the same process as other templates and with the same limits.
func (c *Chart) Objects(context Context) ([]*unstructured.Unstructured, error) {
	return objectsOf(&request{Do: doChart, Name: c.ValuesName, Text: c.Values, Context: context, Chart: c})
}

// chartObjects are the objects of the chart of a request.
func (r *request) chartObjects() ([]json.RawMessage, error) {
	text, err := execute(r.Name, r.Text, &r.Context)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		return nil, fmt.Errorf("template %s must be a map of values: %w", r.Name, err)
	}
	archive, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.Chart.Archive))
	if err != nil {
		return nil, fmt.Errorf("chart %s is no archive in base64: %w", r.Chart.Name, err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("chart %s cannot be read: %w", r.Chart.Name, err)
	}
	manifests, err := manifestsOf(c, given, &r.Context)
	if err != nil {
		return nil, fmt.Errorf("chart %s cannot be rendered: %w", r.Chart.Name, err)
	}
	var all []json.RawMessage
	for _, manifest := range manifests {
		objects, err := object.Parse(manifest.text, "")
		if err != nil {
			return nil, fmt.Errorf("chart %s: %s: %w", r.Chart.Name, manifest.file, err)
		}
		for _, u := range objects {
			raw, err := u.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("chart %s: %s: %w", r.Chart.Name, manifest.file, err)
			}
			all = append(all, raw)
		}
	}
	return all, nil
}

type manifest struct{ file, text string }

// manifestsOf renders a chart as helm template does: it sees no cluster, and the versions of
// Kubernetes that Helm's library has. JSON schemas of values, which may be anywhere, are not read.
func manifestsOf(c *chart.Chart, given map[string]any, r *Context) ([]manifest, error) {
	if err := dependencies.ProcessDependencies(c, given); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the chart
	}
	isInstall := r.PlanName == v1beta1.DeployPlan
	values, err := util.ToRenderValuesWithSchemaValidation(c, given, common.ReleaseOptions{
		Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: isInstall, IsUpgrade: !isInstall,
	}, common.DefaultCapabilities, true)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the chart
	}
	rendered, err := engine.Engine{CustomTemplateFuncs: refusing()}.Render(c, values) //nolint:staticcheck // what takes long ends the process
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the chart
	}
	var all []manifest
	for _, crd := range c.CRDObjects() {
		all = append(all, manifest{crd.Filename, string(crd.File.Data)})
	}
	size := 0
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if base := path.Base(file); strings.HasPrefix(base, "_") || base == "NOTES.txt" {
			continue
		}
		if size += len(rendered[file]); size > maxOutput {
			return nil, fmt.Errorf("the result is longer than %d bytes", maxOutput)
		}
		all = append(all, manifest{file, rendered[file]})
	}
	return all, nil
}

// refusing are the functions whose result would differ, which fail where they are executed: in
// charts they often stand beside a value that may be set instead.
func refusing() template.FuncMap {
	all := template.FuncMap{}
	for name, why := range refusals() {
		if why != aboutFiles { // which are about paths alone
			all[name] = func(...any) (string, error) { return "", refusal(name) }
		}
	}
	return all
}
