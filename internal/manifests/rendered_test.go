package manifests_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/charts"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// sample is a value of the chart in use.
type sample struct {
	// without and with are values that differ in nothing but this one.
	without, with string
	// renders is what only the second ones render.
	renders string
}

const (
	board    = "dashboard: {enabled: true, args: [--url=https://spillway.example.com]"
	routed   = board + ", httpRoute: {enabled: true, parentRefs: [{name: public}]"
	ingress  = board + ", ingress: {enabled: true, host: spillway.example.com"
	monitor  = "metrics: {serviceMonitor: true"
	rule     = "metrics: {prometheusRule: true"
	grafana  = "metrics: {grafanaDashboards: true"
	volume   = "extraVolumes: [{name: ca, configMap: {name: ca}}]"
	webhooks = "webhooks: {clientCA: callers"
)

// samples are those of all values, by their names.
var samples = map[string]sample{
	"image.repository":                {"", "image: {repository: example.test/mine}", "example.test/mine:v1"},
	"image.tag":                       {"", "image: {tag: mine}", "spillway:mine"},
	"image.digest":                    {"", `image: {digest: "sha256:` + strings.Repeat("ab", 32) + `"}`, "spillway@sha256:abab"},
	"image.pullPolicy":                {"", "image: {pullPolicy: Never}", `"imagePullPolicy":"Never"`},
	"nameOverride":                    {"", "nameOverride: releases", `"name":"releases-webhooks"`},
	"fullnameOverride":                {"nameOverride: releases", "nameOverride: releases\nfullnameOverride: acme", `"name":"acme-webhooks"`},
	"imagePullSecrets":                {"", "imagePullSecrets: [{name: pull}]", `"imagePullSecrets":[{"name":"pull"}]`},
	"rings":                           {"", "rings: [config, fleet]", "--rings=config,fleet"},
	"watchNamespaces":                 {"", "watchNamespaces: [shop]", "--namespaces=shop"},
	"pinNamespaces":                   {"", "pinNamespaces: [shop]", "--pin-namespaces=shop"},
	"pinNamespaceSelector":            {"", "pinNamespaceSelector: {matchLabels: {team: shop}}", "--pin-namespace-selector=team=shop"},
	"pinBy":                           {"pinNamespaces: [shop]", "pinNamespaces: [shop]\npinBy: webhook", "--pin-by=webhook"},
	"defaultConfigPolicy":             {"defaultConfigPolicy: false", "", "--default-config-policy"},
	"defaultConfigPolicySpec":         {"", "defaultConfigPolicySpec: {onFailure: Rollback, soak: 5m}", `--default-config-policy-spec={\"onFailure\":\"Rollback\",\"soak\":\"5m\"}`},
	"reloader.annotations":            {"", "reloader: {annotations: true}", "--reloader-annotations"},
	"reloader.cronJobs":               {"", "reloader: {cronJobs: true}", "--reloader-cronjobs"},
	"reloader.metrics":                {"", "reloader: {metrics: true}", "--reloader-metrics"},
	"args":                            {"", "args: [--max-rolling=5]", "--max-rolling=5"},
	"env":                             {"", "env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: x}]", `"name":"OTEL_EXPORTER_OTLP_ENDPOINT"`},
	"crds":                            {"crds: false", "", `"kind":"CustomResourceDefinition"`},
	"replicas":                        {"", "replicas: 3", `"replicas":3`},
	"resources":                       {"", "resources: {limits: {memory: 1Gi}}", `"memory":"1Gi"`},
	"priorityClassName":               {"", "priorityClassName: system-cluster-critical", `"priorityClassName":"system-cluster-critical"`},
	"nodeSelector":                    {"", "nodeSelector: {disk: ssd}", `"nodeSelector":{"disk":"ssd"}`},
	"tolerations":                     {"", "tolerations: [{key: infra}]", `"tolerations":[{"key":"infra"}]`},
	"affinity":                        {"", "affinity: {podAntiAffinity: {}}", `"affinity":{"podAntiAffinity":{}}`},
	"topologySpreadConstraints":       {"", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", `"topologyKey":"zone"`},
	"podAnnotations":                  {"", "podAnnotations: {a: b}", `"annotations":{"a":"b"}`},
	"podLabels":                       {"", "podLabels: {team: platform, app.kubernetes.io/name: mine}", `"app.kubernetes.io/name":"spillway","team":"platform"`},
	"serviceAccountAnnotations":       {"", "serviceAccountAnnotations: {eks.amazonaws.com/role-arn: x}", `"annotations":{"eks.amazonaws.com/role-arn":"x"}`},
	"extraVolumes":                    {"", volume, `"volumes":[{"configMap":{"name":"ca"},"name":"ca"}]`},
	"extraVolumeMounts":               {volume, volume + "\nextraVolumeMounts: [{name: ca, mountPath: /etc/ca}]", `"volumeMounts":[{"mountPath":"/etc/ca","name":"ca"}]`},
	"webhooks.enabled":                {"webhooks: {enabled: false}", "", "--enable-webhooks"},
	"webhooks.certificateSource":      {"", "webhooks: {certificateSource: cert-manager}", `"kind":"Certificate"`},
	"webhooks.hosts":                  {"", "webhooks: {hosts: [rollout-operator.mimir.svc]}", "rollout-operator.mimir.svc"},
	"webhooks.configurations":         {"", "webhooks: {configurations: [theirs]}", ",theirs"},
	"webhooks.apiServers":             {"", "webhooks: {apiServers: [10.0.0.0/28]}", `"cidr":"10.0.0.0/28"`},
	"webhooks.clientCA":               {"", webhooks + "}", "--webhook-client-ca=/client-ca/ca.crt"},
	"webhooks.clientNames":            {webhooks + "}", webhooks + ", clientNames: [apiserver]}", "--webhook-client-names=apiserver"},
	"webhooks.failClosed":             {"", "webhooks: {failClosed: true}", "--fail-closed"},
	"restrictManager":                 {"restrictManager: false", "", "spillway-system.pods.manager.spillway.dev"},
	"metrics.secure":                  {"metrics: {secure: false}", "", "--metrics-secure"},
	"metrics.serviceMonitor":          {"", monitor + "}", `"kind":"ServiceMonitor"`},
	"metrics.serviceMonitorLabels":    {monitor + "}", monitor + ", serviceMonitorLabels: {release: kube-prometheus-stack}}", `"release":"kube-prometheus-stack"`},
	"metrics.serviceMonitorInterval":  {monitor + "}", monitor + ", serviceMonitorInterval: 15s}", `"interval":"15s"`},
	"metrics.prometheusRule":          {"", rule + "}", `"alert":"SpillwayDown"`},
	"metrics.prometheusRuleLabels":    {rule + "}", rule + ", prometheusRuleLabels: {release: kube-prometheus-stack}}", `"release":"kube-prometheus-stack"`},
	"metrics.grafanaDashboards":       {"", grafana + "}", `"spillway-overview.json":"{`},
	"metrics.grafanaDashboardsLabels": {grafana + "}", grafana + ", grafanaDashboardsLabels: {boards: mine}}", `"boards":"mine"`},
	"networkPolicy":                   {"networkPolicy: false", "", `"kind":"NetworkPolicy"`},
	"podDisruptionBudget":             {"podDisruptionBudget: false", "", `"kind":"PodDisruptionBudget"`},
	"dashboard.enabled":               {"", board + "}", `"name":"spillway-dashboard"`},
	"dashboard.namespace":             {board + "}", board + ", namespace: boards}", `"namespace":"boards"`},
	"dashboard.steering":              {board + "}", board + ", steering: true}", `"--steering"`},
	"dashboard.users":                 {board + "}", board + ", users: [ann]}", `"resourceNames":["ann"]`},
	"dashboard.groups":                {board + "}", board + ", groups: [team]}", "--groups=team"},
	"dashboard.replicas":              {board + "}", board + ", replicas: 2}", "--session-key-required"},
	"dashboard.args":                  {"dashboard: {enabled: true, args: [--x]}", board + "}", "--url=https://spillway.example.com"},
	"dashboard.resources":             {board + "}", board + ", resources: {limits: {memory: 2Gi}}}", `"memory":"2Gi"`},
	"dashboard.ingress.enabled":       {board + "}", ingress + "}}", `"kind":"Ingress"`},
	"dashboard.ingress.host":          {board + ", ingress: {enabled: true, host: other}}", ingress + "}}", `"host":"spillway.example.com"`},
	"dashboard.ingress.className":     {ingress + "}}", ingress + ", className: nginx}}", `"ingressClassName":"nginx"`},
	"dashboard.ingress.annotations":   {ingress + "}}", ingress + ", annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}}}", `"nginx.ingress.kubernetes.io/backend-protocol":"HTTPS"`},
	"dashboard.ingress.tlsSecret":     {ingress + "}}", ingress + ", tlsSecret: board-tls}}", `"secretName":"board-tls"`},
	"dashboard.httpRoute.enabled":     {board + "}", routed + "}}", `"kind":"HTTPRoute"`},
	"dashboard.httpRoute.hostnames":   {routed + "}}", routed + ", hostnames: [spillway.example.com]}}", `"hostnames":["spillway.example.com"]`},
	"dashboard.httpRoute.parentRefs":  {board + ", httpRoute: {enabled: true, parentRefs: [{name: other}]}}", routed + "}}", `"parentRefs":[{"name":"public"}]`},
	"packageKinds":                    {"", "packageKinds: true", `"name":"spillway-packages-kubernetes"`},
	"planAccounts":                    {"", "planAccounts: [deployer]", `"resourceNames":["deployer"]`},
	"defaultServiceAccount":           {"", "defaultServiceAccount: deployer", "--default-service-account=deployer"},
	"waveCleanup":                     {"", "waveCleanup: true", ""},
}

// TestEachValueIsRendered holds each value of the schema to what it is for.
func TestEachValueIsRendered(t *testing.T) {
	raw, err := charts.Files.ReadFile("spillway/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := yaml.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range leaves("", schema) {
		s, ok := samples[name]
		if !ok {
			t.Errorf("%s: no sample says what it renders", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			without, with := rendered(t, s.without), rendered(t, s.with)
			if without == with {
				t.Error("it changes nothing")
			}
			if !strings.Contains(with, s.renders) || s.renders != "" && strings.Contains(without, s.renders) {
				t.Errorf("it does not render %s, or without it that is rendered too:\n%s", s.renders, cmp.Diff(strings.Split(without, "\n"), strings.Split(with, "\n")))
			}
		})
	}
}

// leaves are the values of a schema, by their names. Those that Kubernetes defines are not taken apart.
func leaves(prefix string, schema map[string]any) []string {
	var all []string
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		inner, _ := of.(map[string]any)
		switch _, group := inner["properties"]; {
		case prefix+name == "global": // of Helm
		case group && inner["type"] == "object":
			all = append(all, leaves(prefix+name+".", inner)...)
		default:
			all = append(all, prefix+name)
		}
	}
	slices.Sort(all)
	return all
}

// rendered are the objects of an installation with values, in JSON.
func rendered(t *testing.T, values string) string {
	t.Helper()
	var all strings.Builder
	for _, obj := range objectsOf(t, values) {
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(raw, '\n'))
	}
	return all.String()
}

func objectsOf(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	v, err := manifests.ParseValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Objects(manifests.Options{Namespace: "spillway-system", Version: "v1", Image: v.ImageOr("ghcr.io/spillway-dev/spillway:v1"), Values: v})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestValuesWithoutWhatTheyNeedAreRefused: an Ingress without a host would answer for all of them, a
// route without a Gateway for none, and a policy with a field that it does not have would not be created.
func TestValuesWithoutWhatTheyNeedAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"defaultConfigPolicySpec: {stage: []}":  "defaultConfigPolicySpec: the spec of the default policy",
		board + ", ingress: {enabled: true}}":   "dashboard.ingress.host: name the host",
		board + ", httpRoute: {enabled: true}}": "dashboard.httpRoute.parentRefs: name the Gateway",
	} {
		if _, err := manifests.ParseValues([]byte(values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", values, err, want)
		}
	}
}
