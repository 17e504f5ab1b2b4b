package manifests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
)

// Values are the options of an installation as a file has them, that of install --values.
// The tags desc describe them.
type Values struct {
	Image             Image                             `json:"image"                       desc:"Image of the manager."`
	ImagePullSecrets  []corev1.LocalObjectReference     `json:"imagePullSecrets"            desc:"Secrets to pull the image with."`
	Rings             []string                          `json:"rings"                       desc:"Rings to run: config, zones, plans, fleet (on a hub) and assemblage (on the clusters of a fleet)."`
	WatchNamespaces   []string                          `json:"watchNamespaces"             desc:"Namespaces to watch, with Roles in them and no ClusterRole but for the CA of our own webhooks. Empty: all."`
	PinNamespaces     []string                          `json:"pinNamespaces" desc:"Namespaces whose workloads may keep the config of each revision: the manager may create and delete ConfigMaps and Secrets there."`
	PinBy             pin.By                            `json:"pinBy" desc:"What points their Pods at it: policy, which needs Kubernetes 1.36, or webhook."`
	DefaultPolicy     bool                              `json:"defaultConfigPolicy"         desc:"Create a ClusterConfigPolicy, once, by which of the workloads that use a ConfigMap or Secret one is rolled first for a change of it. Not with watchNamespaces."`
	Args              []string                          `json:"args"                        desc:"Further flags of the manager, such as --max-rolling=5. The last one of a name wins."`
	Env               []corev1.EnvVar                   `json:"env"                         desc:"Environment variables of the manager, such as OTEL_EXPORTER_OTLP_ENDPOINT."`
	CRDs              bool                              `json:"crds"                        desc:"Install and upgrade the CustomResourceDefinitions of the rings. They are never deleted."`
	Replicas          int32                             `json:"replicas"                    desc:"How many Pods the manager has. One leads."`
	Resources         corev1.ResourceRequirements       `json:"resources"                   desc:"Resources of the manager."`
	PriorityClassName string                            `json:"priorityClassName"           desc:"PriorityClass of the manager's Pods."`
	NodeSelector      map[string]string                 `json:"nodeSelector"                desc:"Labels of the nodes to run on."`
	Tolerations       []corev1.Toleration               `json:"tolerations"                 desc:"Taints that the manager's Pods tolerate."`
	Affinity          *corev1.Affinity                  `json:"affinity"                    desc:"Affinity of the manager's Pods."`
	TopologySpread    []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints" desc:"How the manager's Pods spread over nodes and zones."`
	PodAnnotations    map[string]string                 `json:"podAnnotations"              desc:"Annotations of the manager's Pods."`
	Webhooks          WebhookValues                     `json:"webhooks"                    desc:"Webhooks of the rings."`
	RestrictManager   bool                              `json:"restrictManager"             desc:"Install policies by which the manager's identity may delete only Pods, and change only fields, that the rings need."`
	Metrics           MetricsValues                     `json:"metrics"                     desc:"Metrics of the manager."`
	NetworkPolicy     bool                              `json:"networkPolicy"               desc:"Install a NetworkPolicy by which clients reach only what the manager serves."`
	DisruptionBudget  bool                              `json:"podDisruptionBudget"         desc:"Install a PodDisruptionBudget by which one Pod of the manager is evicted at a time."`
	Dashboard         DashboardValues                   `json:"dashboard"                   desc:"Dashboard in the cluster, for people who log in there."`
	PackageKinds      bool                              `json:"packageKinds"                desc:"Let the plans ring apply the kinds of Kubernetes that most packages consist of, Secrets and workloads among them."`
	WaveCleanup       bool                              `json:"waveCleanup"                 desc:"Also allow to patch ConfigMaps and Secrets, to remove the owner references of wave before 2024."`
}

// Image is where the image of the manager is.
type Image struct {
	Repository string            `json:"repository" desc:"Repository of the image."`
	Tag        string            `json:"tag"        desc:"Tag of the image. Empty: the version of the program."`
	Digest     string            `json:"digest"     desc:"Digest of the image, such as sha256:…, which wins over the tag."`
	PullPolicy corev1.PullPolicy `json:"pullPolicy" desc:"When to pull the image: Always, IfNotPresent or Never. Empty: as Kubernetes decides."`
}

// WebhookValues say how the webhooks are served.
type WebhookValues struct {
	Enabled           bool             `json:"enabled"           desc:"Serve the webhooks of the rings."`
	CertificateSource admission.Source `json:"certificateSource" desc:"Where their certificate comes from: generated, cert-manager, or files, for a Secret spillway-webhooks-certificate that another program fills."`
	Hosts             []string         `json:"hosts"             desc:"Further names by which API servers call, such as rollout-operator.NAMESPACE.svc."`
	Configurations    []string         `json:"configurations"    desc:"Webhook configurations that the manager may inject its CA into, besides its own; [\"*\"] for all that are labeled."`
	FailClosed        bool             `json:"failClosed"        desc:"Deny a downscale if it is unknown whether it is forbidden or must be prepared."`
}

// MetricsValues say how the metrics are served.
type MetricsValues struct {
	Secure         bool `json:"secure"         desc:"Serve metrics by HTTPS, to clients that may get /metrics. With watchNamespaces they are served by HTTP."`
	ServiceMonitor bool `json:"serviceMonitor" desc:"Install a ServiceMonitor, by which the operator of Prometheus collects the metrics."`
}

// DashboardValues say how the dashboard runs in the cluster.
type DashboardValues struct {
	Enabled   bool                        `json:"enabled"   desc:"Install the dashboard. Its args must name its address, and how people are known."`
	Steering  bool                        `json:"steering"  desc:"Let people pause, resume, approve and more on its pages, each with her own permissions."`
	Users     []string                    `json:"users"     desc:"Users, with their prefix, that its account may impersonate; [\"*\"] for all, those of Kubernetes itself among them."`
	Groups    []string                    `json:"groups"    desc:"Groups, with their prefix, that its account may impersonate, and that people are in on its pages; [\"*\"] for all."`
	Replicas  int32                       `json:"replicas"  desc:"How many Pods serve the dashboard. More than one need a session-key in the Secret spillway-dashboard."`
	Args      []string                    `json:"args"      desc:"Flags of spillway dashboard serve, such as --url and --oidc-issuer-url."`
	Resources corev1.ResourceRequirements `json:"resources" desc:"Resources of the dashboard."`
}

// DefaultValues are those that hold unless a user says otherwise.
func DefaultValues() Values {
	return Values{
		Image: Image{Repository: Repository}, Rings: manager.Rings(), CRDs: true, Replicas: DefaultReplicas, Resources: DefaultResources(),
		DefaultPolicy: true, PinBy: pin.ByPolicy,
		Webhooks: WebhookValues{Enabled: true, CertificateSource: admission.Generated}, RestrictManager: true,
		Metrics: MetricsValues{Secure: true}, NetworkPolicy: true, DisruptionBudget: true,
		Dashboard: DashboardValues{Users: DefaultDashboard().Users, Replicas: DefaultDashboard().Replicas, Resources: DefaultDashboard().Resources},
	}
}

// Repository is where the images of releases are.
const Repository = "ghcr.io/spillway-dev/spillway"

// ParseValues reads a file of values, over the defaults. It is an error if it has one that
// is not known.
func ParseValues(raw []byte) (Values, error) {
	v := DefaultValues()
	if err := yaml.UnmarshalStrict(raw, &v); err != nil {
		return Values{}, fmt.Errorf("values: %w", err)
	}
	known := append(manager.Rings(), manager.RingFleet, manager.RingAssemblage)
	for _, ring := range v.Rings {
		if !slices.Contains(known, ring) {
			return Values{}, fmt.Errorf("values: rings: %q is not known; use %s", ring, strings.Join(known, ", "))
		}
	}
	return v, v.Options("any", "any", "any").Validate()
}

// Options are what the values say, for a namespace. The version is that of the program,
// and the image is used where the values name none.
func (v Values) Options(namespace, version, image string) Options {
	switch {
	case v.Image.Digest != "":
		image = v.Image.Repository + "@" + v.Image.Digest
	case v.Image.Tag != "":
		image = v.Image.Repository + ":" + v.Image.Tag
	case v.Image.Repository != Repository:
		image = v.Image.Repository + tagOf(image)
	}
	return Options{
		Namespace: namespace, Version: version, Image: image, Rings: v.Rings, Watch: v.WatchNamespaces, PinNamespaces: v.PinNamespaces, PinBy: v.PinBy, Args: v.Args, NoKinds: !v.CRDs,
		Pods: Pods{
			Replicas: &v.Replicas, Resources: &v.Resources, NodeSelector: v.NodeSelector, Tolerations: v.Tolerations, Affinity: v.Affinity,
			TopologySpreadConstraints: v.TopologySpread, PriorityClassName: v.PriorityClassName, ImagePullPolicy: v.Image.PullPolicy,
			ImagePullSecrets: v.ImagePullSecrets, Annotations: v.PodAnnotations, Env: v.Env,
		},
		Admission: Admission{
			Off: !v.Webhooks.Enabled, Source: v.Webhooks.CertificateSource, Hosts: v.Webhooks.Hosts,
			Configurations: v.Webhooks.Configurations, FailClosed: v.Webhooks.FailClosed,
		},
		Dashboard: Dashboard{
			Enabled: v.Dashboard.Enabled, Steering: v.Dashboard.Steering, Users: v.Dashboard.Users, Groups: v.Dashboard.Groups,
			Args: v.Dashboard.Args, Replicas: v.Dashboard.Replicas, Resources: v.Dashboard.Resources,
		},
		NoDefaultPolicy: !v.DefaultPolicy, Unrestricted: !v.RestrictManager, PlainMetrics: !v.Metrics.Secure, ServiceMonitor: v.Metrics.ServiceMonitor,
		NoNetworkPolicy: !v.NetworkPolicy, NoDisruptionBudget: !v.DisruptionBudget, PackageKinds: v.PackageKinds, WaveCleanup: v.WaveCleanup,
	}
}

// tagOf is the tag of an image, with its colon. Another registry may have made another
// digest, so that is left out; the port of a registry is none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndexByte(image, ':')
	if colon < strings.LastIndexByte(image, '/') || colon < 0 {
		return ""
	}
	return image[colon:]
}
