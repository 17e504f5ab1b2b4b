package pin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const annotation = "spillway.dev/pins"

// creator creates Pods as dry runs in a namespace where the policy applies.
type creator struct {
	c         *kubernetes.Clientset
	namespace string
}

func newCreator(t *testing.T) *creator {
	t.Helper()
	cfg := rest.CopyConfig(testenv.Shared().Config())
	cfg.QPS = -1
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &creator{c, testenv.Namespace(t)}
	for _, obj := range pin.Policy(pin.In(k.namespace)) {
		testenv.Apply(t, writer, obj)
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: k.namespace}}
	if err := writer.Create(t.Context(), sa); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { // until the API server applies it
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{configMapSource("app")}}}}}
		p.Annotations = map[string]string{annotation: "cm/app=0123456789"}
		got, err := k.create(ctx, p)
		if err == nil && got.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name != "app-0123456789" {
			return fmt.Errorf("the policy does not apply yet: %v", got.Spec.Containers[0].EnvFrom)
		}
		return err
	})
	return k
}

func (k *creator) create(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	p = p.DeepCopy()
	p.Name, p.Namespace = "p", k.namespace
	return k.c.CoreV1().Pods(k.namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func configMapSource(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// The policy makes of random Pods what the function makes of them, and refuses the same: of ten
// thousand before a release.
func TestThePolicyRewritesAsTheFunction(t *testing.T) {
	k := newCreator(t)
	pods := testenv.Size(500, 10_000)
	var group errgroup.Group
	group.SetLimit(8)
	for seed := range pods {
		group.Go(func() error {
			if err := k.check(t.Context(), uint64(seed)); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (k *creator) check(ctx context.Context, seed uint64) error {
	p := randomPod(rand.New(rand.NewPCG(seed, 1)))
	want := p.DeepCopy()
	refused := pin.Rewrite(want)
	got, err := k.create(ctx, p)
	switch {
	case refused != nil && err == nil:
		return fmt.Errorf("was not refused, but %w", refused)
	case refused != nil && strings.Contains(err.Error(), pin.PolicyName):
		return nil
	case err != nil:
		return err
	}
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		return fmt.Errorf("%s: (-function +policy)\n%s", p.Annotations[annotation], diff)
	}
	if seed%20 != 0 {
		return nil
	}
	want.Annotations = nil // and nothing else is changed
	plain, err := k.create(ctx, want)
	if err != nil {
		return err
	}
	for _, p := range []*corev1.Pod{plain, got} { // the admission of ServiceAccounts names a volume at random
		p.Spec.Volumes = p.Spec.Volumes[:len(want.Spec.Volumes)]
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].VolumeMounts = nil
		}
		for i := range p.Spec.InitContainers {
			p.Spec.InitContainers[i].VolumeMounts = nil
		}
	}
	if diff := cmp.Diff(plain.Spec, got.Spec); diff != "" {
		return fmt.Errorf("(-function +policy)\n%s", diff)
	}
	return nil
}

// names are all names in the places of a Pod that refer to ConfigMaps and Secrets, read from
// its JSON, so that they do not depend on the code that is tested.
func names(p *corev1.Pod) []string {
	raw, err := json.Marshal(p.Spec)
	if err != nil {
		panic(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		panic(err)
	}
	var found []string
	collect("", spec, &found)
	return found
}

func collect(path string, value any, found *[]string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range []string{"initContainers", "containers", "volumes", "envFrom", "env", "valueFrom", "projected", "sources", "configMap", "configMapRef", "configMapKeyRef", "secret", "secretRef", "secretKeyRef", "secretName", "name"} {
			if _, ok := v[key]; ok {
				collect(path+"/"+key, v[key], found)
			}
		}
	case []any:
		for i := range v {
			collect(fmt.Sprint(path, i), v[i], found)
		}
	case string:
		if strings.Contains(path, "onfigMap") || strings.Contains(path, "ecret") {
			if !strings.Contains(v, "kube-root-ca") {
				*found = append(*found, path+"="+v)
			}
		}
	}
}

// objects are names of every length, and those that are the beginning of others.
var objects = []string{
	"a", "a-b", "a.b", "app", "app-0123456789", "x.y.z", strings.Repeat("n", 242), strings.Repeat("n", 243),
	strings.Repeat("n", 241) + ".m", strings.Repeat("n", 240) + "-.m"[1:], strings.Repeat("l.", 126) + "l", strings.Repeat("m", 253),
}

func randomPod(r *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{}
	p.Annotations = randomPins(r)
	p.Spec.Containers = randomContainers(r, "c", 1)
	p.Spec.InitContainers = randomContainers(r, "i", 0)
	always := corev1.ContainerRestartPolicyAlways
	for i := range p.Spec.InitContainers {
		if r.IntN(2) == 0 { // a sidecar
			p.Spec.InitContainers[i].RestartPolicy = &always
		}
	}
	for i := range r.IntN(5) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: randomVolume(r)})
	}
	return p
}

func randomPins(r *rand.Rand) map[string]string {
	switch r.IntN(12) {
	case 0:
		return nil
	case 1:
		return map[string]string{annotation: []string{"", "cm/a", "cm/a=1,cm/a=2", "cm/=1", "x/a=1", "cm/a=", "cm/a=1=2", "cm/a=1,", "=", "secret/a=1,,"}[r.IntN(10)]}
	}
	var pins pin.Pins
	for _, kind := range []content.Kind{content.ConfigMap, content.Secret} {
		for _, name := range objects {
			if r.IntN(2) == 0 {
				pins = append(pins, pin.Pin{Kind: kind, Name: name, Digest: []string{"0123456789", "abcdefabcd", pin.Absent}[r.IntN(3)]})
			}
		}
	}
	if len(pins) == 0 {
		return nil
	}
	r.Shuffle(len(pins), func(i, j int) { pins[i], pins[j] = pins[j], pins[i] })
	return map[string]string{annotation: pins.String()}
}

func randomContainers(r *rand.Rand, prefix string, least int) []corev1.Container {
	var containers []corev1.Container
	for i := range least + r.IntN(3) {
		c := corev1.Container{Name: fmt.Sprint(prefix, i), Image: "x"}
		for range r.IntN(4) {
			c.EnvFrom = append(c.EnvFrom, randomEnvFrom(r))
		}
		for j := range r.IntN(5) {
			c.Env = append(c.Env, randomEnv(r, fmt.Sprint("E", j)))
		}
		containers = append(containers, c)
	}
	return containers
}

func object(r *rand.Rand) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: objects[r.IntN(len(objects))]}
}

func maybe(r *rand.Rand) *bool {
	return []*bool{nil, new(true), new(false)}[r.IntN(3)]
}

func randomEnvFrom(r *rand.Rand) corev1.EnvFromSource {
	if r.IntN(2) == 0 {
		return corev1.EnvFromSource{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object(r), Optional: maybe(r)}}
	}
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object(r), Optional: maybe(r)}}
}

func randomEnv(r *rand.Rand, name string) corev1.EnvVar {
	e := corev1.EnvVar{Name: name}
	switch r.IntN(4) {
	case 0:
		e.Value = "cm/a=1"
	case 1:
		e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
	case 2:
		e.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object(r), Key: "k", Optional: maybe(r)}}
	default:
		e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object(r), Key: "k", Optional: maybe(r)}}
	}
	return e
}

func randomVolume(r *rand.Rand) corev1.VolumeSource {
	items := [][]corev1.KeyToPath{nil, {{Key: "k", Path: "p"}}}[r.IntN(2)]
	switch r.IntN(5) {
	case 0:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	case 1:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: object(r), Items: items, Optional: maybe(r)}}
	case 2:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object(r).Name, Items: items, Optional: maybe(r)}}
	default:
		p := &corev1.ProjectedVolumeSource{}
		for i := range 1 + r.IntN(4) {
			s := corev1.VolumeProjection{}
			switch r.IntN(3) {
			case 0:
				s.ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: object(r), Optional: maybe(r)}
			case 1:
				s.Secret = &corev1.SecretProjection{LocalObjectReference: object(r), Optional: maybe(r)}
			default:
				s.DownwardAPI = &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: fmt.Sprint("d", i), FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}}
			}
			p.Sources = append(p.Sources, s)
		}
		return corev1.VolumeSource{Projected: p}
	}
}

// The largest Pod that may be pinned is not beyond what the API server lets a policy cost.
func TestTheLargestPodIsRewritten(t *testing.T) {
	k := newCreator(t)
	p, pins := &corev1.Pod{}, pin.Pins{}
	c := corev1.Container{Name: "c", Image: "x"}
	for i := range pin.Most {
		name := fmt.Sprintf("%s-%03d", strings.Repeat("n", 35), i)
		pins = append(pins, pin.Pin{Kind: content.ConfigMap, Name: name, Digest: "0123456789"})
		c.EnvFrom = append(c.EnvFrom, configMapSource(name))
	}
	for i := range content.MostReferences - pin.Most {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("E", i), ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: pins[i%len(pins)].Name}, Key: "k",
		}}})
	}
	if !pins.Fits() {
		t.Fatalf("the pins have %d bytes", len(pins.String()))
	}
	p.Annotations, p.Spec.Containers = map[string]string{annotation: pins.String()}, []corev1.Container{c}
	want := p.DeepCopy()
	if err := pin.Rewrite(want); err != nil {
		t.Fatal(err)
	}
	got, err := k.create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(want), names(got)); diff != "" {
		t.Error(diff)
	}
}

// A webhook makes of random Pods what the function makes of them, and keeps what it does not know.
func TestTheWebhookRewritesAsTheFunction(t *testing.T) {
	rewrite := pin.Answers()[pin.Webhooks(pin.In("shop"))[0].Path]
	for seed := range uint64(500) {
		p := randomPod(rand.New(rand.NewPCG(seed, 1)))
		want := p.DeepCopy()
		refused := pin.Rewrite(want)
		operations, err := rewrite(withUnknown(t, p), nil)
		if (refused != nil) != (err != nil) {
			t.Fatalf("seed %d: the function says %v, the webhook %v", seed, refused, err)
		}
		if err != nil {
			continue
		}
		raw, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := patch.Apply(withUnknown(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if !jsonpatch.Equal(withUnknown(t, want), got) {
			t.Fatalf("seed %d: %s makes %s, want %s", seed, raw, got, withUnknown(t, want))
		}
	}
}

// withUnknown is a Pod with a field that comes with a later version of Kubernetes.
func withUnknown(t *testing.T, p *corev1.Pod) []byte {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(raw), `"spec":{`, `"spec":{"comesLater":{"a":[1]},`, 1))
}
