package fluxspec_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
)

func raw(t *testing.T, text string) *runtime.RawExtension {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: data}
}

func kustomize(spec *runtime.RawExtension) *v1alpha1.Package {
	return &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Spec: spec}}
}

func git(spec *runtime.RawExtension) *v1alpha1.Source {
	return &v1alpha1.Source{Git: &v1alpha1.GitSource{Spec: spec}}
}

func oci(spec *runtime.RawExtension) *v1alpha1.Source {
	return &v1alpha1.Source{OCI: &v1alpha1.OCISource{Spec: spec}}
}

// Each mistake is named with its field, and with what to do.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		kustomize, git, oci, want string
	}{
		"nothing":                     {},
		"what is handed through":      {kustomize: "{decryption: {provider: sops}, patches: [{patch: x}]}", git: "{ignore: '*.md'}"},
		"a field with a place":        {kustomize: "{interval: 1m}", want: "spec.sync.package.kustomize.spec.interval: Spillway sets it; remove it, and say it in spec.sync.interval"},
		"a field without a place":     {kustomize: "{suspend: true}", want: "spec.sync.package.kustomize.spec.suspend: Spillway sets it; remove it"},
		"a place beneath":             {kustomize: "{postBuild: {substitute: {a: b}}}", want: "spec.sync.package.kustomize.spec.postBuild.substitute: Spillway sets it; remove it, and say it in spec.sync.package.kustomize.substitute"},
		"what is beside it":           {kustomize: "{postBuild: {substituteFrom: [{kind: ConfigMap, name: a}]}}"},
		"a misspelt field":            {kustomize: "{dependOn: []}", want: "spec.sync.package.kustomize.spec.dependOn: the Kustomization of Flux has no such field; it has dependsOn"},
		"a misspelt field beneath":    {kustomize: "{decryption: {provder: sops}}", want: "spec.sync.package.kustomize.spec.decryption.provder: the Kustomization of Flux has no such field"},
		"a value of another type":     {kustomize: "{force: always}", want: "spec.sync.package.kustomize.spec.force: it is of type bool, not string"},
		"no object":                   {kustomize: "[1]", want: "spec.sync.package.kustomize.spec: not an object with fields of the Kustomization of Flux"},
		"a branch":                    {git: "{ref: {branch: main}}", want: "spec.sync.source.git.spec.ref: Spillway sets it; remove it, and say it in spec.sync.source.git.version"},
		"a field of a GitRepository":  {oci: "{recurseSubmodules: true}", want: "spec.sync.source.oci.spec.recurseSubmodules: the OCIRepository of Flux has no such field"},
		"a field of an OCIRepository": {oci: "{verify: {provider: cosign}, layerSelector: {mediaType: a, operation: copy}}"},
	} {
		t.Run(name, func(t *testing.T) {
			var source *v1alpha1.Source
			var pkg *v1alpha1.Package
			switch {
			case test.git != "":
				source = git(raw(t, test.git))
			case test.oci != "":
				source = oci(raw(t, test.oci))
			}
			if test.kustomize != "" {
				pkg = kustomize(raw(t, test.kustomize))
			}
			if diff := cmp.Diff(test.want, strings.Join(fluxspec.Problems("spec.sync", source, pkg, &v1alpha1.SyncOptions{}), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every field that the kinds of Flux have, in the version that is linked, comes out as it was said,
// or is refused with the place where it is said.
func TestEveryFieldOfFlux(t *testing.T) {
	for name, test := range map[string]struct {
		spec    any
		in      func(*runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package)
		refused string
	}{
		"Kustomization": {
			&kustomizev1.KustomizationSpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) { return nil, kustomize(r) },
			"deletionPolicy healthCheckExprs interval kubeConfig path prune sourceRef suspend timeout wait",
		},
		"GitRepository": {
			&sourcev1.GitRepositorySpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) { return git(r), nil }, "ref secretRef suspend url",
		},
		"OCIRepository": {
			&sourcev1.OCIRepositorySpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) { return oci(r), nil }, "ref secretRef suspend url",
		},
		"Bucket": {
			&sourcev1.BucketSpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) {
				return &v1alpha1.Source{Bucket: &v1alpha1.BucketSource{Spec: r}}, nil
			}, "bucketName endpoint prefix secretRef suspend",
		},
		"HelmRepository": {
			&sourcev1.HelmRepositorySpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) {
				return &v1alpha1.Source{Helm: &v1alpha1.HelmSource{Spec: r}}, nil
			}, "secretRef suspend type url",
		},
		"HelmChart": {
			&sourcev1.HelmChartSpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) {
				return nil, &v1alpha1.Package{Helm: &v1alpha1.Helm{Chart: r}}
			}, "chart interval reconcileStrategy sourceRef suspend version",
		},
		"HelmRelease": {
			&helmv2.HelmReleaseSpec{}, func(r *runtime.RawExtension) (*v1alpha1.Source, *v1alpha1.Package) {
				return nil, &v1alpha1.Package{Helm: &v1alpha1.Helm{Spec: r}}
			}, "chart chartRef healthCheckExprs interval kubeConfig suspend timeout values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			filled := reflect.New(reflect.TypeOf(test.spec).Elem())
			fill(filled.Elem())
			said := fieldsOf(t, filled.Interface())
			var refused []string
			for _, field := range slices.Sorted(maps.Keys(said)) {
				one, err := json.Marshal(map[string]any{field: said[field]})
				if err != nil {
					t.Fatal(err)
				}
				part := &runtime.RawExtension{Raw: one}
				source, pkg := test.in(part)
				problems := fluxspec.Problems("", source, pkg, &v1alpha1.SyncOptions{})
				if field == "postBuild" || field == "install" || field == "upgrade" { // a part of it has a place of its own
					continue
				}
				if len(problems) > 0 {
					refused = append(refused, field)
					continue
				}
				out := reflect.New(reflect.TypeOf(test.spec).Elem()).Interface()
				if err := fluxspec.AddTo(out, part); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(said[field], fieldsOf(t, out)[field]); diff != "" {
					t.Errorf("%s (-said +handed through):\n%s", field, diff)
				}
			}
			if got := strings.Join(refused, " "); got != test.refused {
				t.Errorf("refused: %s", got)
			}
		})
	}
}

// What is handed through stands beside what Spillway sets.
func TestAddTo(t *testing.T) {
	spec := kustomizev1.KustomizationSpec{Path: "app", PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{"a": "b"}}}
	if err := fluxspec.AddTo(&spec, raw(t, "{postBuild: {substituteFrom: [{kind: ConfigMap, name: c}]}, retryInterval: 30s}")); err != nil {
		t.Fatal(err)
	}
	if spec.Path != "app" || spec.PostBuild.Substitute["a"] != "b" || spec.PostBuild.SubstituteFrom[0].Name != "c" || spec.RetryInterval.Seconds() != 30 {
		t.Errorf("%+v", spec)
	}
}

// What Helm cannot do, and what says nothing with a source, is refused with its field.
func TestProblemsOfCharts(t *testing.T) {
	for name, test := range map[string]struct{ sync, want string }{
		"a chart alone":          {"source: {helm: {chart: a}}", ""},
		"all that it may say":    {"{source: {git: {}}, package: {helm: {path: charts/a, values: {a: [1]}, chart: {valuesFiles: [b]}, spec: {releaseName: a, upgrade: {remediation: {retries: 1}}, valuesFrom: [{kind: Secret, name: s}]}}}}", ""},
		"values in the spec":     {"{source: {helm: {}}, package: {helm: {spec: {values: {}}}}}", "package.helm.spec.values: Spillway sets it; remove it, and say it in package.helm.values"},
		"a chart in the spec":    {"{source: {helm: {}}, package: {helm: {spec: {chartRef: {}}}}}", "package.helm.spec.chartRef: Spillway sets it; remove it, and say it in source"},
		"waiting":                {"{source: {helm: {}}, package: {helm: {spec: {install: {disableWait: true}}}}}", "package.helm.spec.install.disableWait: Spillway sets it; remove it, and say it in wait"},
		"a strategy":             {"{source: {git: {}}, package: {helm: {chart: {reconcileStrategy: Revision}}}}", "package.helm.chart.reconcileStrategy: Spillway sets it; remove it"},
		"a misspelt field":       {"{source: {helm: {}}, package: {helm: {spec: {releaseNam: a}}}}", "package.helm.spec.releaseNam: the HelmRelease of Flux has no such field; it has releaseName"},
		"a type of repository":   {"source: {helm: {spec: {type: oci}}}", "source.helm.spec.type: Spillway sets it; remove it"},
		"no pruning":             {"{source: {helm: {}}, prune: false}", "prune: Helm always deletes what a chart no longer has; remove it"},
		"a path elsewhere":       {"{source: {oci: {}}, package: {helm: {path: a}}}", "package.helm.path: only a chart in a Git repository or bucket has one; remove it"},
		"a chart of an artifact": {"{source: {oci: {}}, package: {helm: {chart: {valuesFiles: [a]}}}}", "package.helm.chart: there is no HelmChart of an OCI artifact; remove it, or use source.helm with the URL oci://..."},
		"kustomize":              {"{source: {helm: {}}, package: {kustomize: {}}}", "package.kustomize: a chart is installed with Helm; use package.helm"},
		"values that are none":   {"{source: {helm: {}}, package: {helm: {values: [1]}}}", "package.helm.values: not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			sync := v1alpha1.Sync{}
			if err := yaml.UnmarshalStrict([]byte(test.sync), &sync); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(fluxspec.Problems("", sync.Source, sync.Package, &sync.SyncOptions), "\n")
			if got != test.want {
				t.Errorf("%q", got)
			}
		})
	}
}

// Where a user says a field that stands elsewhere in manifests of Flux.
func TestPlace(t *testing.T) {
	for field, want := range map[string]string{
		"decryption": "package.kustomize.spec.decryption", "interval": "interval", "path": "package.kustomize.path", "verify": "source.git.spec.verify",
		"layerSelector": "source.oci.spec.layerSelector", "sourceRef": "source", "kubeConfig": "", "unheard": "", "releaseName": "package.helm.spec.releaseName",
		"valuesFiles": "package.helm.chart.valuesFiles", "passCredentials": "source.helm.spec.passCredentials", "values": "package.helm.values",
		"region": "source.bucket.spec.region", "prefix": "source.bucket.prefix",
	} {
		if got := fluxspec.Place(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

// fieldsOf are the fields of a spec as JSON has them.
func fieldsOf(t *testing.T, spec any) map[string]any {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// fill sets all that a value has to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(60_000_000_000)
	case reflect.Uint8: // of JSON
		v.SetUint('1')
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	default:
	}
}
