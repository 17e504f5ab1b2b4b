package migrate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// TestRewrite: names change, and nothing else does.
func TestRewrite(t *testing.T) {
	for name, test := range map[string]struct{ text, want, says string }{
		"comments and quotes stay": {
			text: "# a\nmetadata:\n  annotations: # b\n    \"wave.pusher.com/update-on-config-change\":   \"true\" # c\n    other: x\n",
			want: "# a\nmetadata:\n  annotations: # b\n    \"spillway.dev/update-on-config-change\":   \"true\" # c\n    other: x\n",
			says: "4: wave.pusher.com/update-on-config-change → spillway.dev/update-on-config-change",
		},
		"several on one line": {
			text: "metadata: {annotations: {rollout-max-unavailable: '2', grafana.com/rollout-paused: 'true'}}",
			want: "metadata: {annotations: {spillway.dev/rollout-max-unavailable: '2', spillway.dev/rollout-paused: 'true'}}",
			says: "1: rollout-max-unavailable → spillway.dev/rollout-max-unavailable",
		},
		"each document, and items of a list": {
			text: "metadata: {annotations: {reloader.stakater.com/auto: 'true'}}\n---\nitems:\n- metadata:\n    annotations:\n      wave.pusher.com/extra-secrets: a\n",
			want: "metadata: {annotations: {spillway.dev/update-on-config-change: 'true'}}\n---\nitems:\n- metadata:\n    annotations:\n      spillway.dev/extra-secrets: a\n",
			says: "6: wave.pusher.com/extra-secrets → spillway.dev/extra-secrets",
		},
		"labels and Pod templates stay: they would roll Pods": {
			text: "metadata: {labels: {rollout-group: a}}\nspec: {template: {metadata: {annotations: {reloader.stakater.com/auto: 'true'}}}}\n",
			want: "metadata: {labels: {rollout-group: a}}\nspec: {template: {metadata: {annotations: {reloader.stakater.com/auto: 'true'}}}}\n",
		},
		"no name twice": {
			text: "metadata:\n  annotations:\n    wave.pusher.com/update-on-config-change: 'true'\n    reloader.stakater.com/auto: 'true'\n",
			want: "metadata:\n  annotations:\n    spillway.dev/update-on-config-change: 'true'\n    reloader.stakater.com/auto: 'true'\n",
			says: "4: reloader.stakater.com/auto stays: spillway.dev/update-on-config-change exists already; remove it",
		},
		"what has another meaning stays": {
			text: "metadata:\n  annotations:\n    reloader.stakater.com/search: 'true'\n    reloader.stakater.com/auto: '1'\n    wave.pusher.com/config-hash: x\n",
			want: "metadata:\n  annotations:\n    reloader.stakater.com/search: 'true'\n    reloader.stakater.com/auto: '1'\n    wave.pusher.com/config-hash: x\n",
			says: "4: reloader.stakater.com/auto stays: no name below spillway.dev means the same",
		},
		"templates of charts stay": {text: "metadata: {annotations: {{ toYaml . }}}\nwave.pusher.com/extra-secrets: {{ x }}\n", want: "metadata: {annotations: {{ toYaml . }}}\nwave.pusher.com/extra-secrets: {{ x }}\n"},
	} {
		got, said := rewrite([]byte(test.text))
		if string(got) != test.want || test.says != "" && !slices.Contains(said, test.says) || test.says == "" && len(said) > 0 {
			t.Errorf("%s: got\n%s\n%s", name, got, strings.Join(said, "\n"))
		}
		if again, _ := rewrite(got); string(again) != string(got) {
			t.Errorf("%s: a second time it changes more:\n%s", name, again)
		}
	}
}

// TestArgumentsAreRead: in each spelling, with what an installation sets itself left out.
func TestArgumentsAreRead(t *testing.T) {
	all := formers()
	m := &migration{env: command.Environment{Lookup: func(string) (string, bool) { return "", false }}}
	c := &corev1.Container{Command: []string{"/wave", "--leader-election-id=x"}, Args: []string{"serve", "--update-rate", "0.5", "-update-burst=7", "--namespaces=b,a", "--zap-log-level=debug", "--max-rolling=x", "--updaet-rate=1"}}
	flags, namespaces := all[0].flagsOf(c, m.managerFlags(), "here")
	var carried, unknown []string
	for _, f := range flags {
		if f.Manager != "" {
			carried = append(carried, f.Manager)
		}
		if f.unknown {
			unknown = append(unknown, f.Name)
		}
	}
	if !slices.Equal(carried, []string{"--update-rate=0.5", "--update-burst=7"}) || !slices.Equal(unknown, []string{"max-rolling", "updaet-rate"}) || !slices.Equal(namespaces, []string{"a", "b"}) {
		t.Errorf("carried over %v, unknown %v, namespaces %v", carried, unknown, namespaces)
	}
	c = &corev1.Container{Env: []corev1.EnvVar{
		{Name: "KUBERNETES_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
		{Name: "ALERT_WEBHOOK_URL", Value: "https://secret"},
	}}
	flags, namespaces = all[1].flagsOf(c, m.managerFlags(), "here")
	if !slices.Equal(namespaces, []string{"here"}) || len(flags) != 2 || flags[1].Value != "" {
		t.Errorf("%+v in %v", flags, namespaces)
	}
}
