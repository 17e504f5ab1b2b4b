package reloader_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// sumOfTwo is SHA-512/256 of "a=1;b=2".
const sumOfTwo = "7db861b5f6b5272224f7cc5e03e8f31d6a2b6fb79ae21b996cdae72457dc886d"

// What Reloader has rolled a workload for is compared with what objects have now, by its own hash.
func TestMissed(t *testing.T) {
	t.Parallel()
	o := &reloader.Options{}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app.conf"}, Data: map[string]string{"b": "2", "a": "1"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app-conf"}, Data: map[string][]byte{"b": []byte("2"), "a": []byte("1")}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app-conf"}, Data: map[string]string{"c": "3"}}
	const another = "00000000000000000000"
	for name, test := range map[string]struct {
		variable, value, annotation string
		objects                     []client.Object
		want                        bool
	}{
		"nothing is recorded":             {objects: []client.Object{cm}},
		"the same":                        {variable: "STAKATER_APP_CONF_CONFIGMAP", value: sumOfTwo, objects: []client.Object{cm}},
		"another content":                 {variable: "STAKATER_APP_CONF_CONFIGMAP", value: another, objects: []client.Object{cm}, want: true},
		"of another kind":                 {variable: "STAKATER_APP_CONF_SECRET", value: another, objects: []client.Object{cm}},
		"a Secret":                        {variable: "STAKATER_APP_CONF_SECRET", value: sumOfTwo, objects: []client.Object{secret}},
		"two names of one variable":       {variable: "STAKATER_APP_CONF_CONFIGMAP", value: sumOfTwo, objects: []client.Object{cm, other}},
		"an empty variable":               {variable: "STAKATER_APP_CONF_CONFIGMAP", objects: []client.Object{cm}},
		"an object that is gone":          {variable: "STAKATER_APP_CONF_CONFIGMAP", value: another},
		"the annotation":                  {annotation: `{"type":"SECRET","name":"app-conf","hash":"` + sumOfTwo + `"}`, objects: []client.Object{secret}},
		"the annotation, another content": {annotation: `{"type":"SECRET","name":"app-conf","hash":"` + another + `"}`, objects: []client.Object{secret}, want: true},
		"an annotation that is no JSON":   {annotation: `{`, objects: []client.Object{secret}},
		"an object that rolls it no more": {variable: "STAKATER_APP_CONF_CONFIGMAP", value: another, objects: []client.Object{ignored(cm)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reloader.Workload{Kind: "Deployment", Annotations: map[string]string{"configmap.reloader.stakater.com/reload": "app.*", "secret.reloader.stakater.com/reload": "app.*"}, Pod: &corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
			if test.variable != "" {
				w.Pod.Containers[0].Env = []corev1.EnvVar{{Name: test.variable, Value: test.value}}
			}
			if test.annotation != "" {
				w.Template = map[string]string{"reloader.stakater.com/last-reloaded-from": test.annotation}
			}
			wants := o.Read(w)
			for _, reduce := range []bool{false, true} {
				var objects []reloader.Object
				for _, obj := range test.objects {
					seen, _ := obj.DeepCopyObject().(client.Object)
					if reduce {
						o.Reduce(seen)
					}
					objects = append(objects, o.ObjectOf(seen))
				}
				if got := wants.Missed(objects); got != test.want {
					t.Errorf("missed: %v, reduced: %v", got, reduce)
				}
			}
			if content.IsDigested(cm) {
				t.Error("the object was changed")
			}
		})
	}
}

func ignored(cm *corev1.ConfigMap) *corev1.ConfigMap {
	c := cm.DeepCopy()
	c.Annotations = map[string]string{"reloader.stakater.com/ignore": "true"}
	return c
}
