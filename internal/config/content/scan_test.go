package content

import (
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
		"wave's": {
			waveReferences("shop", podSpec(t, everyReference), extra),
			slices.Concat([]Reference{head, required(whole(object(ConfigMap, "items")))}, common),
		},
		"ours": {
			References("shop", podSpec(t, everyReference), extra, true),
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
	refs := References("shop", podSpec(t, everyReference), nil, false)
	if slices.ContainsFunc(refs, func(r Reference) bool { return r.Object.Name == "pull" }) {
		t.Error("the image pull Secret counts without being asked for")
	}
}
