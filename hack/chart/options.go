package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// sample is the value of an option that may have any text.
const sample = "sample"

// An option is a value of the chart on which it depends which objects there are, and what
// is in them. It has a few values that matter.
type option struct {
	// name is the variable of templates.
	name string
	// define is how a template computes it. Of a boolean one it is true or false, of
	// others one of cases.
	define string
	cases  []string
	set    func(v *manifests.Values, value int)
	// apart is the kind of objects in which the option changes something that does not
	// depend on other options. There are too many combinations of these to try all twice.
	apart string
}

func boolean(name, define string, set func(v *manifests.Values, on bool)) option {
	return option{name: name, define: define, set: func(v *manifests.Values, value int) { set(v, value == 1) }}
}

// size is how many values an option has.
func (o option) size() int { return max(2, len(o.cases)) } //nolint:mnd // a boolean has two

func allRings() []string {
	return append(manager.Rings(), manager.RingFleet, manager.RingAssemblage)
}

// options are all of the chart that choose. The rings come first.
func options() []option {
	var all []option
	for _, ring := range allRings() {
		all = append(all, boolean(ring, fmt.Sprintf("has %q $.Values.rings", ring), func(v *manifests.Values, on bool) {
			if on {
				v.Rings = append(v.Rings, ring)
			}
		}))
	}
	all = append(all,
		boolean("watch", "not (empty $.Values.watchNamespaces)", func(v *manifests.Values, on bool) {
			if on {
				v.WatchNamespaces = []string{sampleWatched}
			}
		}),
		option{
			name: "pins", define: "not (empty $.Values.pinNamespaces)", apart: "Deployment",
			set: func(v *manifests.Values, value int) {
				if value == 1 {
					v.PinNamespaces = []string{samplePinned}
				}
			},
		},
		option{
			name: "pinBy", define: "$.Values.pinBy", cases: []string{"policy", "webhook"}, apart: "Deployment",
			set: func(v *manifests.Values, value int) { v.PinBy = []pin.By{pin.ByPolicy, pin.ByWebhook}[value] },
		},
		option{
			name: "certificate", define: `ternary $.Values.webhooks.certificateSource "off" $.Values.webhooks.enabled`,
			cases: []string{"off", "generated", "cert-manager", "files"},
			set: func(v *manifests.Values, value int) {
				v.Webhooks.Enabled = value > 0
				v.Webhooks.CertificateSource = []admission.Source{admission.Generated, admission.Generated, admission.CertManager, admission.Files}[value]
			},
		},
		boolean("hosts", "not (empty $.Values.webhooks.hosts)", func(v *manifests.Values, on bool) {
			if on {
				v.Webhooks.Hosts = []string{sampleHost}
			}
		}),
		option{
			name: "configurations", define: `ternary "none" (ternary "all" "some" (has "*" $.Values.webhooks.configurations)) (empty $.Values.webhooks.configurations)`,
			cases: []string{"none", "some", "all"},
			set: func(v *manifests.Values, value int) {
				v.Webhooks.Configurations = [][]string{nil, {sampleConfiguration}, {manifests.AllLabeled}}[value]
			},
		},
		boolean("failClosed", "$.Values.webhooks.failClosed", func(v *manifests.Values, on bool) { v.Webhooks.FailClosed = on }),
		boolean("restrict", "$.Values.restrictManager", func(v *manifests.Values, on bool) { v.RestrictManager = on }),
		boolean("secure", "$.Values.metrics.secure", func(v *manifests.Values, on bool) { v.Metrics.Secure = on }),
		boolean("monitor", "$.Values.metrics.serviceMonitor", func(v *manifests.Values, on bool) { v.Metrics.ServiceMonitor = on }),
		boolean("networkPolicy", "$.Values.networkPolicy", func(v *manifests.Values, on bool) { v.NetworkPolicy = on }),
		boolean("budget", "$.Values.podDisruptionBudget", func(v *manifests.Values, on bool) { v.DisruptionBudget = on }),
		boolean("packageKinds", "$.Values.packageKinds", func(v *manifests.Values, on bool) { v.PackageKinds = on }),
		boolean("defaultPolicy", "$.Values.defaultConfigPolicy", func(v *manifests.Values, on bool) { v.DefaultPolicy = on }),
		boolean("waveCleanup", "$.Values.waveCleanup", func(v *manifests.Values, on bool) { v.WaveCleanup = on }),
	)
	return append(all, dashboardOptions()...)
}

// dashboardOptions are those of the dashboard.
func dashboardOptions() []option {
	return []option{
		boolean("dashboard", "$.Values.dashboard.enabled", func(v *manifests.Values, on bool) { v.Dashboard.Enabled = on }),
		{
			name: "several", define: "gt (int $.Values.dashboard.replicas) 1", apart: "Deployment",
			set: func(v *manifests.Values, value int) { v.Dashboard.Replicas = []int32{1, samplePageReplicas}[value] },
		},
		boolean("steering", "$.Values.dashboard.steering", func(v *manifests.Values, on bool) { v.Dashboard.Steering = on }),
		{
			name: "users", define: named("users"), cases: []string{"none", "some", "all"},
			set: func(v *manifests.Values, value int) {
				v.Dashboard.Users = [][]string{nil, {sampleUser}, {manifests.All}}[value]
			},
		},
		{
			name: "groups", define: named("groups"), cases: []string{"none", "some", "all"},
			set: func(v *manifests.Values, value int) {
				v.Dashboard.Groups = [][]string{nil, {sampleGroup}, {manifests.All}}[value]
			},
		},
	}
}

// named is whether no, some or all users or groups of the dashboard are named.
func named(value string) string {
	return fmt.Sprintf(`ternary "none" (ternary "all" "some" (has "*" $.Values.dashboard.%[1]s)) (empty $.Values.dashboard.%[1]s)`, value)
}

// Samples stand for what users write. Where one is found in what is installed, a template
// has the user's.
const (
	sampleNamespace     = "samplenamespace"
	sampleImage         = "sampleimage"
	sampleVersion       = "sampleversion"
	sampleWatched       = "samplewatched"
	sampleHost          = "samplehost"
	samplePinned        = "samplepinned"
	sampleConfiguration = "sampleconfiguration"
	sampleArgument      = "--sampleargument"
	sampleUser          = "sampleuser"
	sampleGroup         = "samplegroup"
	samplePageArgument  = "--samplepageargument"
	sampleRings         = "samplerings"
	sampleReplicas      = 7919
	samplePageReplicas  = 7927
)

// sampled are the values in strings, and what a template has in their place.
var sampled = []struct{ sample, template string }{
	{sampleNamespace, "$.Release.Namespace"},
	{sampleImage, `(include "spillway.image" $)`},
	{sampleVersion, `(include "spillway.version" $)`},
	{sampleRings, `(join "," $.Values.rings)`},
	{"spillway-install", "$.Release.Service"},
	{sampleWatched, "$watched"},
	{sampleHost, "$host"},
	{samplePinned, "$pinned"},
	{sampleConfiguration, "$configuration"},
	{sampleArgument, "$argument"},
	{sampleUser, "$user"},
	{sampleGroup, "$group"},
	{samplePageArgument, "$pageArgument"},
}

// lists are the values that are lists, of which a sample is one element.
var lists = []struct{ sample, variable, list string }{
	{sampleWatched, "$watched", "$.Values.watchNamespaces"},
	{sampleHost, "$host", "$.Values.webhooks.hosts"},
	{samplePinned, "$pinned", "$.Values.pinNamespaces"},
	{sampleConfiguration, "$configuration", "$.Values.webhooks.configurations"},
	{sampleArgument, "$argument", "$.Values.args"},
	{sampleUser, "$user", "$.Values.dashboard.users"},
	{sampleGroup, "$group", "$.Values.dashboard.groups"},
	{samplePageArgument, "$pageArgument", "$.Values.dashboard.args"},
}

// whole are the values that stand as they are under a key, unless they are empty. The
// sample of each is found by its key.
var whole = map[string]string{
	"resources": "resources", "affinity": "affinity", "nodeSelector": "nodeSelector", "tolerations": "tolerations",
	"topologySpreadConstraints": "topologySpreadConstraints", "priorityClassName": "priorityClassName",
	"imagePullPolicy": "image.pullPolicy", "imagePullSecrets": "imagePullSecrets", "annotations": "podAnnotations", "env": "env",
}

// wholeOf are those of objects that have values of their own.
var wholeOf = map[string]map[string]string{"spillway-dashboard": {"resources": "dashboard.resources"}}

// sampleValues are values with all samples, but for those that options choose.
func sampleValues() manifests.Values {
	v := manifests.DefaultValues()
	v.Rings, v.CRDs, v.Replicas, v.Args = nil, false, sampleReplicas, []string{sampleArgument}
	v.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: sample}},
	}}
	v.Dashboard.Args = []string{samplePageArgument}
	v.NodeSelector = map[string]string{sample: sample}
	v.Tolerations = []corev1.Toleration{{Key: sample}}
	v.TopologySpread = []corev1.TopologySpreadConstraint{{TopologyKey: sample}}
	v.PriorityClassName, v.Image.PullPolicy = sample, "Sample"
	v.ImagePullSecrets = []corev1.LocalObjectReference{{Name: sample}}
	v.PodAnnotations = map[string]string{sample: sample}
	v.Env = []corev1.EnvVar{{Name: sample}}
	return v
}

// assignment is a value for each option.
type assignment []uint8

func (a assignment) with(option int, value uint8) assignment {
	b := slices.Clone(a)
	b[option] = value
	return b
}

// runsRing is false of an assignment that no installation has: one without any ring.
func (a assignment) runsRing() bool { return slices.Contains(a[:len(allRings())], 1) }

// objects are what is installed, by kind, namespace and name.
func (a assignment) objects() (map[string]map[string]any, error) {
	v := sampleValues()
	for i, o := range options() {
		o.set(&v, int(a[i]))
	}
	all, err := manifests.Unstructured(v.Options(sampleNamespace, sampleVersion, sampleImage))
	if err != nil {
		return nil, err
	}
	objects := map[string]map[string]any{}
	for _, obj := range all {
		if obj.GetKind() == "Namespace" {
			continue // helm install --create-namespace makes it
		}
		prepareArguments(obj.Object)
		objects[strings.Join([]string{obj.GetKind(), obj.GetNamespace(), obj.GetName()}, "/")] = obj.Object
	}
	return objects, nil
}

// joined are the flags whose values are lists, and those of which the order is that of
// the alphabet.
var joined = map[string]bool{"--namespaces=": false, "--pin-namespaces=": false, "--groups=": false, "--webhook-host=": false, "--webhook-configurations=": true}

// prepareArguments takes lists in arguments apart, so that they are compared element by
// element.
func prepareArguments(obj map[string]any) {
	if obj["kind"] != "Deployment" {
		return
	}
	container := at(obj, "spec", "template", "spec", "containers").([]any)[0].(map[string]any) //nolint:forcetypeassert // a Deployment
	args := container["args"].([]any)                                                          //nolint:forcetypeassert // the same
	for i := range args {
		arg := args[i].(string) //nolint:forcetypeassert // the same
		if strings.HasPrefix(arg, "--rings=") {
			args[i] = "--rings=" + sampleRings
		}
		for prefix := range joined {
			if list, ok := strings.CutPrefix(arg, prefix); ok {
				items := []any{}
				for item := range strings.SplitSeq(list, ",") {
					items = append(items, item)
				}
				args[i] = map[string]any{joinKey: prefix, "items": items}
			}
		}
	}
}

// joinKey marks an argument that was taken apart.
const joinKey = "\x00join"

func at(obj map[string]any, path ...string) any {
	var value any = obj
	for _, field := range path {
		value = value.(map[string]any)[field] //nolint:forcetypeassert // the caller knows the kind
	}
	return value
}
