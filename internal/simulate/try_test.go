package simulate

import (
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
)

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func TestTry(t *testing.T) {
	base, _ := os.ReadFile("testdata/try/base.yaml")
	change, _ := os.ReadFile("testdata/try/change.yaml")
	began := time.Now()
	r, err := Run(t.Context(), objects(t, string(base)), objects(t, string(change)), Options{
		Now: time.Now(), Namespace: "default", Readiness: Readiness{Default: 30 * time.Second}, Nodes: 3, Config: config.Options{CoalesceWindow: 5 * time.Second, UpdateBurst: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("real time", time.Since(began))
	for _, s := range r.Steps {
		t.Log(s.At, s.Decision, s.Ring, s)
	}
	for _, s := range r.Waits {
		t.Log(s.At, s.Ring, s.Object, s.Sentence)
	}
	t.Log(r.Took, r.Settled)
}
