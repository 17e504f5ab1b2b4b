package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const manifests = "../../../charts/spillway/generated/"

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// install makes the kinds known to the API server.
func install(t *testing.T) client.Client {
	t.Helper()
	paths := []string{manifests + "fleet", manifests + "gates", manifests + "assemblage"}
	if _, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, spillway.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func object(t *testing.T, namespace, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &obj.Object); err != nil {
		t.Fatal(spec, err)
	}
	group := v1alpha1.GroupVersion
	if kind == "ModuleRevision" || kind == "RolloutGate" {
		group = spillway.GroupVersion
	}
	obj.SetGroupVersionKind(group.WithKind(kind))
	obj.SetNamespace(namespace)
	obj.SetGenerateName("x-")
	return obj
}

// accepts checks what the API server says to objects of a kind: it refuses each
// for what is beside it, or accepts it for nothing.
func accepts(t *testing.T, kind string, specs map[string]string) {
	t.Helper()
	c, namespace := install(t), testenv.Namespace(t)
	for spec, refusal := range specs {
		err := c.Create(t.Context(), object(t, namespace, kind, spec), client.FieldValidation(metav1.FieldValidationStrict))
		if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%s %s: %v, want it refused for %q", kind, spec, err, refusal)
		}
	}
}

// The RFC's examples, with sources in place of the dots, as they stand.
const rfc = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: replace, namespace: default}
spec:
  selector: {matchLabels: {env: dev}}
  strategy: Replace
  template:
    spec:
      controlPlaneBindings: [{name: REGION, objectFieldRef: {apiVersion: v1, kind: ConfigMap, name: "$(CLUSTER_NAME)", fieldPath: /data/region}}]
      sync: {source: {git: {url: "https://example.com/app", version: {tag: v1.0.0}}}, package: {kustomize: {path: deploy}}}
---
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: staging-canary, namespace: default}
spec:
  selector: {matchLabels: {env: staging}}
  strategy: Incremental
  rollout: {maxUnreadyClusters: 2}
  template:
    spec:
      controlPlaneBindings: []
      sync: {source: {git: {url: "https://example.com/app", version: {revision: 4a6c9c5}}}, package: {kustomize: {path: .}}}
`

func TestTheExamplesOfTheRFCApplyAsTheyStand(t *testing.T) {
	c := install(t)
	for doc := range strings.SplitSeq(rfc, "---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user")); err != nil {
			t.Error(err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), obj) })
	}
}

// TestWhatTheServerSaysToModules: what the hub could not understand is refused
// before it has to, and the answer names the field.
func TestWhatTheServerSaysToModules(t *testing.T) {
	sync := `{source: {git: {url: "https://x.test/a", version: {tag: v1}}}}`
	with := func(more string) string { return `{template: {spec: {sync: ` + sync + `}}, ` + more + `}` }
	source := func(source string) string { return `{sync: {source: {` + source + `}}}` }
	rollout := func(more string) string { return with("strategy: Incremental, rollout: {" + more + "}") }
	accepts(t, "Module", map[string]string{
		`{selector: {}, sync: ` + sync + `}`: "",
		`{selector: {matchLabels: {a: b}}, controlPlaneBindings: [{name: A, value: ""}], sync: ` + sync + `}`:                                                                       "",
		`{sync: {source: {git: {url: "ssh://git@x.test/a", version: {revision: abc}}}, bindings: [{name: A, value: x}], package: {kustomize: {path: ., substitute: {a: "$(A)"}}}}}`: "",
		`{}`:                             "exactly one of template and sync",
		`{sync: {}}`:                     "source must be set",
		`{template: {spec: {sync: {}}}}`: "source must be set",
		with(`sync: ` + sync):            "exactly one of template and sync",
		with(`controlPlaneBindings: []`): "belong in template.spec",
		source(``):                       "exactly one of git, oci, helm and bucket",
		source(`git: {url: "https://x", version: {}}`):                                                                               "exactly one of tag, branch, semver and revision",
		source(`git: {url: "git@x:y", version: {tag: a}}`):                                                                           "spec.sync.source.git.url",
		source(`git: {url: "https://x", version: {tag: a, revision: b}}`):                                                            "exactly one of tag, branch, semver and revision",
		source(`git: {url: "https://x", version: {branch: main}}`):                                                                   "",
		source(`git: {url: "https://x", version: {branch: main, tag: v1}}`):                                                          "exactly one of tag, branch, semver and revision",
		source(`git: {url: "https://x", version: {semver: 1.x, mutable: true}}`):                                                     "",
		source(`git: {url: "https://x", version: {revision: abc, mutable: true}}`):                                                   "a revision is not mutable",
		source(`oci: {url: "oci://x/a", version: {semver: 1.x, tag: v1}}`):                                                           "exactly one of tag, semver and digest",
		source(`helm: {url: "https://x", chart: a, version: 1.x}`):                                                                   "",
		source(`bucket: {endpoint: x, bucketName: a, prefix: v1/}`):                                                                  "",
		source(`bucket: {endpoint: x, bucketName: a, mutable: true}`):                                                                "",
		source(`bucket: {endpoint: x, bucketName: a, mutable: false}`):                                                               "a bucket has no versions: set prefix",
		source(`bucket: {endpoint: x, prefix: v1/}`):                                                                                 "spec.sync.source.bucket.bucketName",
		source(`helm: {url: "oci://x", chart: a}`):                                                                                   "spec.sync.source.helm.version",
		source(`helm: {url: "https://x", chart: a, version: 1.x}, git: {url: "https://x", version: {tag: a}}`):                       "exactly one of git, oci, helm and bucket",
		`{sync: {source: {helm: {url: "https://x", chart: a, version: 1.0.0}}, package: {helm: {values: {a: [1]}}, kustomize: {}}}}`: "at most one of kustomize and helm",
		source(`oci: {url: "oci://x/a", version: {tag: v1}}`):                                                                        "",
		source(`oci: {url: "oci://x/a", version: {digest: "sha256:0123456789abcdef0123456789abcdef"}}`):                              "",
		source(`oci: {url: "oci://x/a", version: {tag: v1, digest: "sha256:0123456789abcdef0123456789abcdef"}}`):                     "exactly one of tag, semver and digest",
		source(`oci: {url: "https://x/a", version: {tag: v1}}`):                                                                      "spec.sync.source.oci.url",
		source(`oci: {url: "oci://x", version: {tag: v1}}, git: {url: "https://x", version: {tag: v1}}`):                             "exactly one of git, oci, helm and bucket",
		`{sync: {source: {git: {url: "https://x", version: {tag: a}}}, interval: soon}}`:                                             "interval",
		`{sync: {source: {git: {url: "https://x", version: {tag: a}}}, interval: 1m30s, prune: false}}`:                              "",
		with(`strategy: Sometimes`):                             "strategy",
		with(`strategy: External`):                              "",
		with(`deletionPolicy: Orphan`):                          "",
		with(`deletionPolicy: Keep`):                            "deletionPolicy",
		with(`revisionHistoryLimit: -1`):                        "revisionHistoryLimit",
		with(`suspend: true, targetRevision: a-1`):              "",
		rollout(`maxUnreadyClusters: 10%`):                      "",
		rollout(`maxUnreadyClusters: 0`):                        "maxUnreadyClusters",
		rollout(`maxUnreadyClusters: 0%`):                       "maxUnreadyClusters",
		rollout(`maxUnreadyClusters: 101%`):                     "maxUnreadyClusters",
		rollout(`maxUnreadyClusters: "2"`):                      "maxUnreadyClusters",
		rollout(`maxFailures: 0`):                               "",
		rollout(`maxFailures: 0%`):                              "",
		rollout(`maxFailures: -1`):                              "maxFailures",
		rollout(`minReadySeconds: -1`):                          "minReadySeconds",
		rollout(`progressDeadlineSeconds: 0`):                   "progressDeadlineSeconds",
		rollout(`onFailure: Rollback`):                          "",
		rollout(`onFailure: Panic`):                             "onFailure",
		rollout(`orderBy: {}`):                                  "labelKey",
		rollout(`unmatchedClusters: Fail`):                      "unmatchedClusters requires stages",
		rollout(`unmatchedClusters: Fail, stages: [{name: a}]`): "",
		rollout(`stages: [{name: a}, {name: a}]`):               "Duplicate value",
		rollout(`stages: [{name: Canary}]`):                     "stages[0].name",
		rollout(`stages: [{name: a, clusters: 1}, {name: b}]`):  "",
		rollout(`stages: [{name: a, clusters: 0}]`):             "clusters",
		rollout(`stages: [{name: a, soakSeconds: -1}]`):         "soakSeconds",
		rollout(`stages: [{name: a, gates: [{name: acme.io/error-rate, when: After}, {name: approve}]}]`):                                                       "",
		rollout(`stages: [{name: a, gates: [{name: approve}, {name: approve}]}]`):                                                                               "Duplicate value",
		rollout(`stages: [{name: a, gates: [{name: approve, when: Later}]}]`):                                                                                   "when",
		rollout(`windows: [{schedule: "0 2 * * *", durationSeconds: 7200, timeZone: Europe/London}]`):                                                           "",
		rollout(`windows: [{schedule: "0 2 * *", durationSeconds: 7200}]`):                                                                                      "schedule",
		rollout(`windows: [{schedule: "0 2 * * *", durationSeconds: 0}]`):                                                                                       "durationSeconds",
		rollout(`windows: [{schedule: "0 2 * * *", durationSeconds: 1, timeZone: "../etc"}]`):                                                                   "timeZone",
		with(`rollout: {maxUnready: 2}`):                                                                                                                        "maxUnready",
		`{template: {spec: {sync: ` + sync + `, controlPlaneBindings: [{name: A, value: x, objectFieldRef: {kind: ConfigMap, name: a, fieldPath: /data/a}}]}}}`: "at most one of value and objectFieldRef",
	})
	accepts(t, "BootstrapModule", map[string]string{
		`{selector: {}, sync: ` + sync + `}`:                                                               "",
		`{sync: {bindings: [], source: {git: {url: "https://x", version: {tag: a}}}}}`:                     "nothing evaluates sync.bindings",
		`{template: {spec: {sync: {bindings: [], source: {git: {url: "https://x", version: {tag: a}}}}}}}`: "nothing evaluates sync.bindings",
	})
}

// TestAllBindingsOfTheHubCanBeSent: what the hub takes, and the name of the cluster, has
// room in an Assemblage.
func TestAllBindingsOfTheHubCanBeSent(t *testing.T) {
	bindings := func(n int) string {
		return "bindings: [" + strings.TrimSuffix(strings.Repeat("{name: A, value: x},", n), ",") + `], source: {git: {url: "https://x.test/a", version: {tag: v1}}}`
	}
	accepts(t, "Module", map[string]string{
		`{sync: {` + bindings(64) + `}}`: "", `{template: {spec: {sync: {` + bindings(64) + `}}}}`: "",
		`{sync: {` + bindings(65) + `}}`: "at most 64", `{template: {spec: {sync: {` + bindings(65) + `}}}}`: "at most 64",
	})
	accepts(t, "ProxyAssemblage", map[string]string{
		`{kubeconfigRef: {name: c}, assemblage: {syncs: [{name: a, ` + bindings(64) + `}]}}`: "",
		`{kubeconfigRef: {name: c}, assemblage: {syncs: [{name: a, ` + bindings(65) + `}]}}`: "at most 64",
	})
	accepts(t, "Assemblage", map[string]string{
		`{syncs: [{name: a, ` + bindings(129) + `}]}`: "", `{syncs: [{name: a, ` + bindings(130) + `}]}`: "must have at most 129 items",
	})
}

func TestWhatTheServerSaysToAssemblages(t *testing.T) {
	git := `source: {git: {url: "https://x.test/a", version: {tag: v1}}}`
	accepts(t, "Assemblage", map[string]string{
		`{}`: "",
		`{syncs: [{name: a, ` + git + `, bindings: [{name: A, value: x}]}]}`: "",
		`{syncs: [{name: a, hold: {reason: broken, by: alice}}]}`:            "",
		`{syncs: [{name: a}]}`: "source must be set",
		`{syncs: [{name: a, ` + git + `}, {name: a, ` + git + `}]}`: "Duplicate value",
	})
	accepts(t, "ProxyAssemblage", map[string]string{
		`{kubeconfigRef: {name: c-kubeconfig}}`: "",
		`{kubeconfigRef: {name: c-kubeconfig}, clusterRef: {name: c}, assemblage: {syncs: [{name: a, revision: a-1, assignedAt: "2026-05-04T12:00:00.123456Z", controlPlaneBindings: [{name: A, value: x}], ` + git + `}]}}`: "",
		`{}`: "kubeconfigRef",
		`{kubeconfigRef: {name: c-kubeconfig}, assemblage: {syncs: [{name: a}]}}`: "source must be set",
	})
	accepts(t, "RemoteAssemblage", map[string]string{
		`{kubeconfigRef: {name: c}, syncs: [{name: a, sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, name: a}}]}`: "",
		`{kubeconfigRef: {name: c}, syncs: [{name: a, ` + git + `}]}`:                                                                        "",
		`{kubeconfigRef: {name: c}, syncs: [{name: a, sourceRef: {kind: HelmChart, name: a}}]}`:                                              `supported values: "GitRepository", "OCIRepository", "Bucket"`,
		`{kubeconfigRef: {name: c}, syncs: [{name: a, sourceRef: {kind: GitRepository, name: a}, ` + git + `}]}`:                             "at most one of source and sourceRef",
		`{kubeconfigRef: {name: c}, syncs: [{name: a}]}`:                                                                                     "one of source and sourceRef",
	})
}

// TestRevisionsAndGatesDoNotChange: what a rollout may go back to, and what was
// approved, stays what it was.
func TestRevisionsAndGatesDoNotChange(t *testing.T) {
	c, namespace := install(t), testenv.Namespace(t)
	for _, kind := range []string{"ModuleRevision", "RolloutGate"} {
		spec := `{moduleRef: {kind: Module, name: a}, number: 1, template: {spec: {}, sync: {source: {git: {url: "https://x", version: {tag: a}}}}}}`
		change := []string{"spec", "template", "sync", "interval"}
		if kind == "RolloutGate" {
			spec = `{targetRef: {apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, name: a}, revision: a-1, stage: canary, gate: approve, when: After}`
			change = []string{"spec", "stage"}
		}
		obj := object(t, namespace, kind, spec)
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(kind, err)
		}
		if err := unstructured.SetNestedField(obj.Object, "5m", change...); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(t.Context(), obj); err == nil || !strings.Contains(err.Error(), "is immutable") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestStatusComesBackAsItWasWritten: the moments in it to the microsecond.
func TestStatusComesBackAsItWasWritten(t *testing.T) {
	c, namespace := install(t), testenv.Namespace(t)
	git := v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: "v1"}}
	module := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	module.Spec.Sync = &v1alpha1.Sync{Source: &v1alpha1.Source{Git: &git}}
	if err := c.Create(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewMicroTime(time.Date(2026, 5, 4, 12, 0, 0, 123456000, time.UTC))
	module.Status = v1alpha1.ModuleStatus{
		CurrentRevision: "app-1", TargetRevision: "app-2", ObservedSync: module.Spec.Sync,
		Summary:         &v1alpha1.Summary{Total: 3, Updated: 1},
		Stages:          []v1alpha1.StageStatus{{Name: "canary", State: "Updating", Total: 1, StartedAt: &at}},
		FailingClusters: []v1alpha1.FailingCluster{{Name: "c", Revision: "app-2", Message: "no"}},
		Moves:           []v1alpha1.Move{{Cluster: "c", Revision: "app-2", At: at}},
		Seen:            &v1alpha1.Seen{Assemblages: "7"},
		History:         []v1alpha1.PastRollout{{Revision: "app-2", StartedAt: at, Outcome: "Running"}},
	}
	want := module.Status.DeepCopy()
	if err := c.Status().Update(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(want, &module.Status) {
		t.Errorf("%+v, want %+v", module.Status, *want)
	}
}
