package authoring

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// chartPlans are the tasks and plans of a package of which the content is a chart: what Helm does
// at an installation, an upgrade and a deletion, with its hooks.
const chartPlans = `
tasks:
- {name: apply, kind: Apply, spec: {chart: chart.b64, values: values.yaml}}
- {name: delete, kind: Delete, spec: {chart: chart.b64, values: values.yaml}}
HOOKSplans:
  deploy: {strategy: serial, phases: [{name: chart, strategy: serial, steps: [{name: pre-install, tasks: [pre-install]}, {name: apply, tasks: [apply]}, {name: post-install, tasks: [post-install]}]}]}
  update: {strategy: serial, phases: [{name: chart, strategy: serial, steps: [{name: pre-upgrade, tasks: [pre-upgrade]}, {name: apply, tasks: [apply]}, {name: post-upgrade, tasks: [post-upgrade]}]}]}
  upgrade: {strategy: serial, phases: [{name: chart, strategy: serial, steps: [{name: pre-upgrade, tasks: [pre-upgrade]}, {name: apply, tasks: [apply]}, {name: post-upgrade, tasks: [post-upgrade]}]}]}
  cleanup: {strategy: serial, phases: [{name: chart, strategy: serial, steps: [{name: pre-delete, tasks: [pre-delete]}, {name: delete, tasks: [delete]}, {name: post-delete, tasks: [post-delete]}]}]}
`

// mostChart bounds the archive of a chart, in bytes: etcd takes 1.5 MiB for an OperatorVersion.
const mostChart = 1 << 20

// NewFromChart writes a package that installs a Helm chart, and returns the files. Each of the
// values at the top is a parameter. The name is that of the chart, unless one is given.
func NewFromChart(dir, name string, archive []byte, overwrite bool) ([]string, error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("--from-chart: it is no archive of a chart: %w", err)
	}
	if c.Metadata.Type == "library" {
		return nil, fmt.Errorf("--from-chart: chart %s is a library, which installs nothing; name one that uses it", c.Name())
	}
	name = cmp.Or(name, c.Name())
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if len(archive) > mostChart {
		return nil, fmt.Errorf("--from-chart: the archive has more than %d KiB, and an OperatorVersion has no room for it; leave out by .helmignore what the chart does not need", mostChart>>10)
	}
	version, _, _ := strings.Cut(c.Metadata.Version, "+")
	operator := fmt.Sprintf("name: %s\noperatorVersion: %s\n", quoted(name), quoted(version))
	if of := c.Metadata.AppVersion; of != "" && len(validation.IsDNS1123Subdomain(of)) == 0 { // it is part of a name
		operator += fmt.Sprintf("appVersion: %s\n", quoted(of))
	}
	if c.Metadata.Description != "" {
		operator += fmt.Sprintf("description: %s\n", quoted(c.Metadata.Description))
	}
	var hooks strings.Builder
	for _, at := range []string{"install", "upgrade", "delete"} {
		for _, when := range []string{"pre", "post"} {
			fmt.Fprintf(&hooks, "- {name: %[1]s-%[2]s, kind: Apply, spec: {chart: chart.b64, values: values.yaml, hook: %[1]s-%[2]s}}\n", when, at)
		}
	}
	parameters, values, err := parametersOf(c.Values)
	if err != nil {
		return nil, err
	}
	dir = cmp.Or(dir, name)
	return writeNew(dir, overwrite, map[string]string{
		"operator.yaml": operator + strings.TrimPrefix(strings.Replace(chartPlans, "HOOKS", hooks.String(), 1), "\n"), "params.yaml": parameters,
		"templates/values.yaml": values, "templates/chart.b64": base64.StdEncoding.EncodeToString(archive) + "\n",
	})
}

// writeNew writes the files of a package to a directory.
func writeNew(dir string, overwrite bool, files map[string]string) (written []string, _ error) {
	if _, err := os.Lstat(dir); err == nil && !overwrite {
		return nil, fmt.Errorf("%s exists; choose another directory with --dir, or replace its files with --overwrite", dir)
	}
	for _, below := range []string{dir, filepath.Join(dir, "templates")} {
		if err := makeDir(below); err != nil {
			return nil, fmt.Errorf("create the directory: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(files[name]), 0o644); err != nil { //nolint:gosec // others may read a package
			return nil, fmt.Errorf("write the package: %w", err)
		}
		written = append(written, to)
	}
	return written, nil
}

// identifier is a name that a template can select.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parametersOf are the values at the top as parameters, and the template that makes them values
// again. What has no value is the chart's.
func parametersOf(all map[string]any) (parameters, values string, _ error) {
	parameters = "parameters:\n"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		raw, err := json.Marshal(all[name])
		if err != nil {
			return "", "", fmt.Errorf("value %s of the chart: %w", name, err)
		}
		if all[name] == nil {
			continue
		}
		kind, from := typeOf(raw), ".Params."+name
		if !identifier.MatchString(name) {
			from = "(index .Params " + quoted(name) + ")"
		}
		if kind == v1beta1.StringType || kind == v1beta1.ArrayType || kind == v1beta1.MapType {
			from = "toJson " + from
		}
		parameters += fmt.Sprintf("- {name: %s, type: %s, default: %s}\n", quoted(name), kind, raw)
		values += fmt.Sprintf("%s: {{ %s }}\n", quoted(name), from)
	}
	if values == "" {
		parameters, values = "parameters: []\n", "{}\n"
	}
	return parameters, values, nil
}

// typeOf is the type of a value in JSON.
func typeOf(raw []byte) v1beta1.ParameterType {
	switch raw[0] {
	case '"':
		return v1beta1.StringType
	case 't', 'f':
		return v1beta1.BooleanType
	case '[':
		return v1beta1.ArrayType
	case '{':
		return v1beta1.MapType
	}
	if bytes.ContainsAny(raw, ".eE") {
		return v1beta1.NumberType
	}
	return v1beta1.IntegerType
}
