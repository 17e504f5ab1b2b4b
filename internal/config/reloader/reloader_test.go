package reloader_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// pod uses objects in every way.
const pod = `
initContainers:
- name: init
  envFrom: [{secretRef: {name: init}}]
  volumeMounts: [{name: init, mountPath: /i}]
containers:
- name: one
  env:
  - {name: A, valueFrom: {configMapKeyRef: {name: key, key: a}}}
  - {name: B, valueFrom: {secretKeyRef: {name: key, key: b}}}
  - {name: C, value: plain}
  envFrom:
  - {configMapRef: {name: all}}
  volumeMounts:
  - {name: mounted, mountPath: /m}
  - {name: both, mountPath: /p}
  - {name: again, mountPath: /a}
  - {name: class, mountPath: /c}
imagePullSecrets: [{name: pull}]
volumes:
- {name: mounted, configMap: {name: mounted, items: [{key: k, path: p}]}}
- {name: init, secret: {secretName: init-file}}
- {name: unmounted, configMap: {name: unmounted}}
- {name: first, secret: {secretName: twice}}
- {name: again, secret: {secretName: twice}}
- {name: class, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}
- name: both
  projected:
    sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {serviceAccountToken: {path: t}}]
`

// objects are those of the namespace, "KIND/NAME", with what their annotations and labels say.
var objects = map[string]map[string]string{
	"cm/all": nil, "cm/key": nil, "cm/mounted": nil, "cm/unmounted": nil, "cm/projected": nil, "cm/other": nil, "cm/app-one": nil, "cm/not-app": nil, "cm/a.b": nil, "cm/axb": nil,
	"secret/init": nil, "secret/init-file": nil, "secret/key": nil, "secret/projected": nil, "secret/twice": nil, "secret/pull": nil, "secret/other": nil,
	"class/vault": nil, "class/other": nil,
}

func workload(t *testing.T, text string) reloader.Workload {
	t.Helper()
	w := reloader.Workload{Kind: "Deployment", Annotations: map[string]string{}, Template: map[string]string{}, Pod: &corev1.PodSpec{}}
	if err := yaml.UnmarshalStrict([]byte(pod), w.Pod); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, found := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		onTemplate := strings.HasPrefix(key, "template ")
		key = strings.ReplaceAll(strings.TrimPrefix(key, "template "), "…", "reloader.stakater.com")
		switch {
		case !found:
		case onTemplate:
			w.Template[key] = value
		default:
			w.Annotations[key] = value
		}
	}
	return w
}

var kindOf = map[string]content.Kind{"cm": content.ConfigMap, "secret": content.Secret, "class": content.SecretProviderClass}

// rolledBy are the objects that roll a workload, in order.
func rolledBy(o *reloader.Options, w reloader.Workload, marked map[string]map[string]string) string {
	wants, found := o.Read(w), []string{}
	for name := range objects {
		kind, of, _ := strings.Cut(name, "/")
		if wants.RolledBy(kindOf[kind], of, o.MarkOf(marked[name], marked[name])) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

const (
	readConfigMaps = "cm/all cm/key cm/mounted cm/projected"
	readSecrets    = "secret/init secret/init-file secret/key secret/projected secret/twice"
	readObjects    = readConfigMaps + " " + readSecrets
)

func TestWhatRollsAWorkload(t *testing.T) {
	t.Parallel()
	csi := func(o *reloader.Options) { o.Classes = true }
	all := func(o *reloader.Options) { o.AutoAll = true }
	for name, test := range map[string]struct {
		annotations string
		flags       func(*reloader.Options)
		marked      map[string]map[string]string
		want        string
	}{
		"nothing":                                  {},
		"auto counts what a container reads":       {annotations: "…/auto: true", want: readObjects},
		"auto with classes":                        {annotations: "…/auto: true", flags: csi, want: "class/vault " + readConfigMaps + " " + readSecrets},
		"auto is parsed: 1":                        {annotations: "…/auto: 1", want: readObjects},
		"auto is parsed: t":                        {annotations: "…/auto: t", want: readObjects},
		"auto is parsed: TRUE":                     {annotations: "…/auto: TRUE", want: readObjects},
		"auto is parsed: yes is not true":          {annotations: "…/auto: yes"},
		"auto of ConfigMaps":                       {annotations: "configmap.…/auto: true", want: readConfigMaps},
		"auto of Secrets":                          {annotations: "secret.…/auto: true", want: readSecrets},
		"auto of classes":                          {annotations: "secretproviderclass.…/auto: true", flags: csi, want: "class/vault"},
		"auto of classes without the driver":       {annotations: "secretproviderclass.…/auto: true"},
		"one of auto and typed auto is enough":     {annotations: "…/auto: false\nsecret.…/auto: true", want: readSecrets},
		"a list counts alone":                      {annotations: "configmap.…/reload: other", want: "cm/other"},
		"a list of several":                        {annotations: "configmap.…/reload: other, all ,", want: "cm/all cm/other"},
		"a list of Secrets":                        {annotations: "secret.…/reload: other,pull", want: "secret/other secret/pull"},
		"a list of classes":                        {annotations: "secretproviderclass.…/reload: other", flags: csi, want: "class/other"},
		"a list has regular expressions":           {annotations: "configmap.…/reload: app-.*", want: "cm/app-one"},
		"they are anchored":                        {annotations: "configmap.…/reload: app"},
		"of an alternative only half":              {annotations: "configmap.…/reload: app|other", want: "cm/app-one cm/other"},
		"from its end, too":                        {annotations: "configmap.…/reload: other|app", want: "cm/not-app cm/other"},
		"a group is anchored":                      {annotations: "configmap.…/reload: (app|other)", want: "cm/other"},
		"a dot is any character":                   {annotations: "configmap.…/reload: a.b", want: "cm/a.b cm/axb"},
		"what is quoted without an end":            {annotations: `configmap.…/reload: \Qapp,other`, want: "cm/other"},
		"an invalid one is left out":               {annotations: "configmap.…/reload: app-(,other", want: "cm/other"},
		"search and match":                         {annotations: "…/search: true", marked: marks("match", "true", "cm/all", "secret/key"), want: "cm/all secret/key"},
		"search rolls only for what is read":       {annotations: "…/search: true", marked: marks("match", "true", "cm/other")},
		"search is exact":                          {annotations: "…/search: 1", marked: marks("match", "true", "cm/all")},
		"match is exact":                           {annotations: "…/search: true", marked: marks("match", "1", "cm/all")},
		"match without search":                     {marked: marks("match", "true", "cm/all")},
		"auto counts beside search":                {annotations: "…/search: true\n…/auto: true", marked: marks("match", "true", "cm/all"), want: readObjects},
		"ignore":                                   {annotations: "configmap.…/auto: true", marked: marks("ignore", "true", "cm/all"), want: "cm/key cm/mounted cm/projected"},
		"ignore counts more than a list":           {annotations: "configmap.…/reload: all,other", marked: marks("ignore", "true", "cm/all"), want: "cm/other"},
		"ignore is exact":                          {annotations: "configmap.…/reload: all", marked: marks("ignore", "TRUE", "cm/all"), want: "cm/all"},
		"exclude":                                  {annotations: "configmap.…/auto: true\nconfigmaps.exclude.…/reload: all, key", want: "cm/mounted cm/projected"},
		"exclude counts more than a list":          {annotations: "configmap.…/reload: all,other\nconfigmaps.exclude.…/reload: all", want: "cm/other"},
		"exclude has no regular expressions":       {annotations: "configmap.…/auto: true\nconfigmaps.exclude.…/reload: .*", want: readConfigMaps},
		"exclude is of one kind":                   {annotations: "…/auto: true\nsecrets.exclude.…/reload: key", want: readConfigMaps + " secret/init secret/init-file secret/projected secret/twice"},
		"exclude on the template does not count":   {annotations: "configmap.…/auto: true\ntemplate configmaps.exclude.…/reload: all", want: readConfigMaps},
		"exclude counts for the template's auto":   {annotations: "template configmap.…/auto: true\nconfigmaps.exclude.…/reload: all", want: "cm/key cm/mounted cm/projected"},
		"exclude of classes":                       {annotations: "…/auto: true\nsecretproviderclasses.exclude.…/reload: vault", flags: csi, want: readObjects},
		"all on the template":                      {annotations: "template …/auto: true", want: readObjects},
		"a trigger of the workload counts alone":   {annotations: "…/auto: false\ntemplate …/auto: true"},
		"also an empty one":                        {annotations: "…/search: \ntemplate …/auto: true"},
		"but for each kind":                        {annotations: "configmap.…/reload: other\ntemplate …/auto: true", want: "cm/other " + readSecrets},
		"what is no trigger does not":              {annotations: "deployment.…/pause-period: 5m\ntemplate configmap.…/auto: true", want: readConfigMaps},
		"all workloads":                            {flags: all, want: readObjects},
		"but those that refuse":                    {annotations: "…/auto: false", flags: all},
		"or refuse on the template":                {annotations: "template …/auto: false", flags: all},
		"or for one kind":                          {annotations: "secret.…/auto: false", flags: all, want: readConfigMaps},
		"what cannot be parsed refuses":            {annotations: "…/auto: yes", flags: all},
		"what is empty does not":                   {annotations: "…/auto: ", flags: all, want: readObjects},
		"a list beside all":                        {annotations: "configmap.…/reload: other", flags: all, want: "cm/all cm/key cm/mounted cm/other cm/projected " + readSecrets},
		"a kind that is left out":                  {annotations: "…/auto: true\nsecret.…/reload: other", flags: func(o *reloader.Options) { o.IgnoredKinds = []content.Kind{content.Secret} }, want: readConfigMaps},
		"labels that are asked for":                {annotations: "configmap.…/auto: true", flags: selects(t, "app=x"), marked: map[string]map[string]string{"cm/all": {"app": "x"}, "cm/key": {"app": "y"}}, want: "cm/all"},
		"labels of any value":                      {annotations: "configmap.…/auto: true", flags: selects(t, "app:*"), marked: map[string]map[string]string{"cm/all": {"app": "x"}, "cm/key": {"app": "y"}}, want: "cm/all cm/key"},
		"an annotation that is renamed":            {annotations: "example.com/roll: true\n…/auto: false", flags: renames("reloader.stakater.com/auto", "example.com/roll"), want: readObjects},
		"an annotation of objects that is renamed": {annotations: "configmap.…/reload: all", flags: renames("reloader.stakater.com/ignore", "example.com/not"), marked: map[string]map[string]string{"cm/all": {"example.com/not": "true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &reloader.Options{}
			if test.flags != nil {
				test.flags(o)
			}
			w := workload(t, test.annotations)
			if got := rolledBy(o, w, test.marked); got != strings.TrimSpace(test.want) {
				t.Errorf("rolled by %q, want %q", got, test.want)
			}
			if wants := o.Read(w); test.want != "" && !wants.MayRoll() {
				t.Error("it may roll, and is said not to")
			}
		})
	}
}

func marks(of, value string, objects ...string) map[string]map[string]string {
	marked := map[string]map[string]string{}
	for _, o := range objects {
		marked[o] = map[string]string{"reloader.stakater.com/" + of: value}
	}
	return marked
}

func renames(of, to string) func(*reloader.Options) {
	return func(o *reloader.Options) { o.Names = map[string]string{of: to} }
}

func selects(t *testing.T, entry string) func(*reloader.Options) {
	t.Helper()
	selector, err := reloader.ParseSelector([]string{entry})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *reloader.Options) { o.Selector = selector }
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ annotations, kind, want string }{
		"none":                              {annotations: "…/auto: true\ndeployment.…/pause-period: 5m\n…/rollout-strategy: restart\ntemplate …/last-reloaded-from: {}"},
		"others' annotations":               {annotations: "example.com/auto: yes"},
		"no boolean":                        {annotations: "…/auto: yes", want: `…/auto "yes": must be "true" or "false"; using "false"`},
		"no boolean on the template":        {annotations: "template secret.…/auto: on", want: `secret.…/auto "on": must be "true" or "false"; using "false"`},
		"search that is not exact":          {annotations: "…/search: 1", want: `…/search "1": must be "true" or "false"; using "false"`},
		"no regular expression":             {annotations: "configmap.…/reload: app-(,other", want: `configmap.…/reload "app-(": must be a name or a regular expression; ignoring it`},
		"too many":                          {annotations: "configmap.…/reload: " + strings.Repeat("a,", 200), want: "configmap.…/reload " + `"` + strings.Repeat("a,", 200) + `": must be a list of at most 200 entries, with 1024 bytes of regular expressions; ignoring the others`},
		"too large":                         {annotations: "secret.…/reload: " + strings.Repeat(".", 1025), want: `secret.…/reload "` + strings.Repeat(".", 1025) + `": must be a list of at most 200 entries, with 1024 bytes of regular expressions; ignoring the others`},
		"an unknown name":                   {annotations: "…/autos: true", want: `…/autos "true": no annotation of Reloader 1.4 has this name; correct it or remove it; ignoring it`},
		"an unknown domain":                 {annotations: "configmaps.…/auto: true", want: `configmaps.…/auto "true": no annotation of Reloader 1.4 has this name; correct it or remove it; ignoring it`},
		"one of objects":                    {annotations: "…/ignore: true", want: `…/ignore "true": must be on a ConfigMap or Secret; ignoring it`},
		"an exclusion on the template":      {annotations: "template secrets.exclude.…/reload: db", want: `secrets.exclude.…/reload "db": must be on the Deployment, not on its Pod template; ignoring it`},
		"a delay that is none":              {annotations: "deployment.…/pause-period: soon", want: `deployment.…/pause-period "soon": must be a duration such as "5m"; using none`},
		"a delay of another kind":           {annotations: "deployment.…/pause-period: 5m", kind: "StatefulSet", want: `deployment.…/pause-period "5m": must be on a Deployment; ignoring it`},
		"an unknown strategy":               {annotations: "…/rollout-strategy: delete", want: `…/rollout-strategy "delete": must be "rollout" or "restart"; ignoring it`},
		"auto and search":                   {annotations: "…/auto: true\n…/search: true", want: `…/search "true": …/auto is true, and counts; remove one of the two`},
		"no auto, and auto of a kind":       {annotations: "…/auto: false\nsecret.…/auto: true", want: `…/auto "false": secret.…/auto is true, and counts for Secrets; remove one of the two`},
		"listed and excluded":               {annotations: "secret.…/reload: db,x\nsecrets.exclude.…/reload: x", want: `secret.…/reload "x": secrets.exclude.…/reload has it, too, and counts; remove one of the two`},
		"the template's list has no effect": {annotations: "…/auto: true\ntemplate secret.…/reload: db", want: `secret.…/reload "db": the annotations of the Deployment count, not those of its Pod template; move it there or remove it`},
		"both say the same":                 {annotations: "secret.…/reload: db\ntemplate secret.…/reload: db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workload(t, test.annotations)
			if test.kind != "" {
				w.Kind = test.kind
			}
			wants := (&reloader.Options{}).Read(w)
			var found []string
			for _, p := range wants.Problems {
				found = append(found, strings.ReplaceAll(p.Annotation+` "`+p.Value+`": `+p.Action, "reloader.stakater.com", "…"))
			}
			if got := strings.Join(found, "\n"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	renamed := &reloader.Options{Names: map[string]string{"reloader.stakater.com/auto": "example.com/roll"}}
	wants := renamed.Read(workload(t, "…/auto: true\nexample.com/roll: maybe"))
	if len(wants.Problems) != 2 || wants.Problems[0].Annotation != "example.com/roll" || !strings.Contains(wants.Problems[1].Action, "reads example.com/roll in its place") {
		t.Errorf("of annotations that are renamed: %+v", wants.Problems)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"5m": 5 * time.Minute, "0s": 0, "-1s": 0, "x": 0} {
		wants := (&reloader.Options{}).Read(workload(t, "…/auto: true\ndeployment.…/pause-period: "+value))
		if wants.Delay != want {
			t.Errorf("%s: %s", value, wants.Delay)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{"app=x": "app=x", "app:x": "app=x", "app=*": "app", "app:*": "app", "app": "app", "app in (a,b)": "app in (a,b)", "": ""} {
		selector, err := reloader.ParseSelector([]string{entry})
		if err != nil || selector.String() != want {
			t.Errorf("%q: %v, %v", entry, selector, err)
		}
	}
	if selector, err := reloader.ParseSelector(nil); selector != nil || err != nil {
		t.Errorf("none: %v, %v", selector, err)
	}
	if _, err := reloader.ParseSelector([]string{"a b"}); err == nil {
		t.Error("what is no selector is read")
	}
	if kinds, err := reloader.ParseIgnored([]string{"configMaps"}); err != nil || !slices.Equal(kinds, []content.Kind{content.ConfigMap}) {
		t.Errorf("ConfigMaps: %v, %v", kinds, err)
	}
	for _, entries := range [][]string{{"pods"}, {"configmaps", "secrets"}} {
		if _, err := reloader.ParseIgnored(entries); err == nil {
			t.Errorf("%v are ignored", entries)
		}
	}
	o := &reloader.Options{IgnoredNamespaces: []string{"kube-system"}}
	if !o.Skips("kube-system") || o.Skips("shop") {
		t.Error("other namespaces are skipped")
	}
}
