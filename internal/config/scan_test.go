package config

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// everyReference uses config in every way that a Pod can.
const everyReference = `
volumes:
- {name: a, configMap: {name: whole}}
- {name: b, configMap: {name: items, items: [{key: k, path: p}]}}
- {name: c, secret: {secretName: maybe, optional: true}}
- name: d
  projected:
    sources:
    - {configMap: {name: projected}}
    - {secret: {name: projected-items, items: [{key: tls.crt, path: p}], optional: true}}
    - {serviceAccountToken: {path: token}}
    - {downwardAPI: {}}
- {name: e, emptyDir: {}}
imagePullSecrets: [{name: pull}]
initContainers:
- name: sidecar
  restartPolicy: Always
  envFrom: [{secretRef: {name: init}}]
  env: [{name: X, valueFrom: {configMapKeyRef: {name: init-key, key: x}}}]
containers:
- name: one
  env:
  - {name: A, valueFrom: {configMapKeyRef: {name: key, key: a}}}
  - {name: B, valueFrom: {secretKeyRef: {name: key, key: b, optional: true}}}
  - {name: C, value: plain}
  - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- name: two
  envFrom:
  - {configMapRef: {name: all}}
  - {secretRef: {name: all, optional: true}}
`

func podSpec(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func required(ref Reference) Reference {
	ref.Required = true
	for i := range ref.Keys {
		ref.Keys[i].Required = true
	}
	return ref
}

func TestEveryReferenceIsFound(t *testing.T) {
	extra := []Reference{{Object: object(Secret, "extra"), Extra: true}}
	common := []Reference{
		{Object: object(Secret, "maybe")},
		required(whole(object(ConfigMap, "projected"))),
		keyed(object(Secret, "projected-items"), "tls.crt"),
		extra[0],
		required(whole(object(ConfigMap, "all"))),
		{Object: object(Secret, "all")},
		required(keyed(object(ConfigMap, "key"), "a")),
		keyed(object(Secret, "key"), "b"),
	}
	head := required(whole(object(ConfigMap, "whole")))
	tests := map[string]struct{ got, want []Reference }{
		"the predecessor's": {
			predecessorReferences("shop", podSpec(t, everyReference), extra),
			slices.Concat([]Reference{head, required(whole(object(ConfigMap, "items")))}, common),
		},
		"ours": {
			references("shop", podSpec(t, everyReference), extra, true),
			slices.Concat([]Reference{head, required(keyed(object(ConfigMap, "items"), "k"))}, common, []Reference{
				required(whole(object(Secret, "init"))),
				required(keyed(object(ConfigMap, "init-key"), "x")),
				{Object: object(Secret, "pull")},
			}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got, cmpopts.IgnoreUnexported(Reference{})); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPullSecretsCountOnlyWhenAskedFor(t *testing.T) {
	refs := references("shop", podSpec(t, everyReference), nil, false)
	if slices.ContainsFunc(refs, func(r Reference) bool { return r.Object.Name == "pull" }) {
		t.Error("the image pull Secret counts without being asked for")
	}
}

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		check       func(Settings) bool
		problems    int
	}{
		"tracked by the predecessor's name": {
			nil, func(s Settings) bool {
				return s.Tracked && s.Dialect == "wave.pusher.com/update-on-config-change"
			}, 0,
		},
		"extra config": {
			map[string]string{"wave.pusher.com/extra-configmaps": "a,other/b", "wave.pusher.com/extra-secrets": "s"},
			func(s Settings) bool {
				return len(s.Extra) == 3 && s.Extra[1].Object == Object{ConfigMap, "other", "b"} && !s.Extra[1].Required
			}, 0,
		},
		"malformed extra entries are named and the others count": {
			map[string]string{"wave.pusher.com/extra-configmaps": "a/b/c,,Bad Name, good"},
			func(s Settings) bool {
				return len(s.Extra) == 1 && s.Extra[0].Object.Name == "good" && s.Extra[0].spaced
			}, 3,
		},
		"an unclear pause pauses":    {map[string]string{"spillway.dev/pause": "yes"}, func(s Settings) bool { return s.Paused }, 1},
		"a clear pause":              {map[string]string{"spillway.dev/pause": "true"}, func(s Settings) bool { return s.Paused }, 0},
		"no pause":                   {map[string]string{"spillway.dev/pause": "false"}, func(s Settings) bool { return !s.Paused }, 0},
		"a window":                   {map[string]string{"spillway.dev/coalesce-window": "5s"}, func(s Settings) bool { return s.CoalesceWindow.Seconds() == 5 }, 0},
		"a window that is none":      {map[string]string{"spillway.dev/coalesce-window": "soon"}, func(s Settings) bool { return s.CoalesceWindow == nil }, 1},
		"a negative window":          {map[string]string{"spillway.dev/coalesce-window": "-1s"}, func(s Settings) bool { return s.CoalesceWindow == nil }, 1},
		"a priority":                 {map[string]string{"spillway.dev/priority": "-7"}, func(s Settings) bool { return s.Priority == -7 }, 0},
		"a priority that is none":    {map[string]string{"spillway.dev/priority": "high"}, func(s Settings) bool { return s.Priority == 0 }, 1},
		"ignored objects and keys":   {map[string]string{"spillway.dev/ignore-configmaps": "a, b:key"}, func(s Settings) bool { return len(s.Ignored) == 2 && s.Ignored[1].Keys[0].Name == "key" }, 0},
		"an ignored key that cannot": {map[string]string{"spillway.dev/ignore-secrets": "b:!"}, func(s Settings) bool { return len(s.Ignored) == 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"wave.pusher.com/update-on-config-change": "true"}
			maps.Copy(annotations, test.annotations)
			s := settings("shop", annotations)
			if !test.check(s) {
				t.Errorf("settings = %+v", s)
			}
			if len(s.Problems) != test.problems {
				t.Errorf("problems = %v, want %d", s.Problems, test.problems)
			}
		})
	}
}

func TestOnlyTrueTracks(t *testing.T) {
	for value, problems := range map[string]int{"false": 0, "True": 1, "yes": 1, "": 1} {
		s := settings("shop", map[string]string{"wave.pusher.com/update-on-config-change": value})
		if s.Tracked || len(s.Problems) != problems {
			t.Errorf("%q: tracked %v, problems %v", value, s.Tracked, s.Problems)
		}
	}
}
