//go:build unix

// Package public_test lints and simulates manifests that projects of the field publish: the
// program must understand them, call nothing in them a mistake that is none, and end.
//
// They come from Go modules that carry them, each pinned by version and checksum; none is
// copied here. All are tried by each run of the tests that the program has changed for: go
// keeps the modules, 200 MB, and remembers the result.
package public_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// module is a module and the sets of manifests in it.
type module struct {
	path, sum string
	sets      []set
}

// set is what is installed together: a file or a folder.
type set struct {
	path string
	// assumed is what else has to make first, and what the simulation assumes.
	assumed []string
}

func sets(paths ...string) []set {
	all := make([]set, 0, len(paths))
	for _, path := range paths {
		all = append(all, set{path: path})
	}
	return all
}

var modules = []module{
	{"gopkg.in/k8snetworkplumbingwg/multus-cni.v4@v4.1.4", "h1:+/aWUXBRWdNaEwjV74ExSP0J9OTd1z+ZcELPtywc1zg=", sets("deployments/multus-daemonset.yml")},
	{"go.universe.tf/metallb@v0.14.9", "h1:FYLII4Rpnju8pLY79H0BIoJVQI4mmEzeO9BJ0X44HX8=", sets("config/manifests/metallb-native.yaml", "config/manifests/metallb-frr.yaml")},
	{"sigs.k8s.io/secrets-store-csi-driver@v1.4.7", "h1:AyuwmPTW2GoPD2RjyVD3OrH1J9cdPZx+0h2qJvzbGXs=", sets("deploy")},
	{"github.com/tektoncd/triggers@v0.31.0", "h1:UiOn9sjavdJDEoAT+FZf+L3I1QQvzI31oJm8+GpNa7s=", sets("config")},
	{"github.com/tektoncd/pipeline@v0.68.0", "h1:bVzj+HbS/NQAPV2CfEW8HZrREm7uagPCzEggyxVTBdc=", sets("config")},
	{"knative.dev/serving@v0.44.0", "h1:c6TXhoSAI6eXt0/1ET3C69jMWYA4ES9FskSan/fBaac=", sets(
		"config/core", "third_party/contour-latest", "third_party/cert-manager-latest", "third_party/kourier-latest", "third_party/istio-latest/net-istio.yaml")},
	{"sigs.k8s.io/gateway-api@v1.2.1", "h1:fZZ/+RyRb+Y5tGkwxFKuYuSRQHu9dZtbjenblleOLHM=", []set{
		{"conformance/base", []string{"secret/tls-passthrough-checks-certificate"}}}}, // its suite makes it
	{"github.com/argoproj/argo-cd/v2@v2.14.9", "h1:a6olDRG9HGvkF1gWJ3plvfdrX/tk7cu3ZbkVS0y/rMU=", sets(
		"manifests/install.yaml", "manifests/namespace-install.yaml", "manifests/ha/install.yaml")},
	{"github.com/argoproj/argo-rollouts@v1.8.0", "h1:a427nBeVPMEdYnO9YpELV1mc4yhO9BLZLuTvq2QX8Ps=", sets("manifests/install.yaml", "manifests/dashboard-install.yaml")},
	{"github.com/argoproj/argo-workflows/v3@v3.6.5", "h1:0dvQr+CrhYgCc7ZJ4ZxusLVL/LKwHnpkT1lw/BP4+W4=", sets("manifests/quick-start-minimal.yaml", "manifests/quick-start-postgres.yaml")},
	{"github.com/kyverno/kyverno@v1.13.4", "h1:2zUi+eszlisLdCir+WIf2NtuUfFPvJtjUNpewdtLjVw=", sets("config")},
	{"github.com/open-policy-agent/gatekeeper/v3@v3.18.2", "h1:P3h1f8hin0M/a9r70LajMjOPxF3C1dUFqqWJZ4B3A5E=", sets("deploy")},
	{"github.com/projectcontour/contour@v1.30.2", "h1:ZlyFRC2KLZxZxPwft9S+egFAmx47oHbntCHTOG2KSVs=", sets("examples/render/contour.yaml", "examples/render/contour-gateway-provisioner.yaml")},
	{"github.com/cloudnative-pg/cloudnative-pg@v1.25.1", "h1:Yc6T7ikQ1AiWXBQht+6C3DoihrIpUN2OkM1dIwqadTo=", sets("releases/cnpg-1.25.0.yaml")},
	{"github.com/cilium/cilium@v1.17.1", "h1:ntPELVbdXCuenYm2qbzLGzHnrBZe8WYyRi6C952+hsc=", sets(
		"examples/kubernetes/connectivity-check/connectivity-check.yaml", "examples/kubernetes/addons/prometheus/monitoring-example.yaml")},
}

// TestPublicManifests lints and simulates each set. What a set does not bring along is
// unknown or assumed; nothing of it is an error.
func TestPublicManifests(t *testing.T) {
	tried := 0
	for i := range modules {
		m := &modules[i]
		tried += len(m.sets)
		t.Run(m.path, func(t *testing.T) {
			folder := m.fetch(t)
			for _, s := range m.sets {
				path := filepath.Join(folder, filepath.FromSlash(s.path))
				run(t, s.path, "lint", path)
				args := []string{"simulate", "-f", path}
				for _, name := range s.assumed {
					args = append(args, "--assume", name)
				}
				run(t, s.path, args...)
			}
		})
	}
	if tried < 25 {
		t.Errorf("%d sets are tried, fewer than 25", tried)
	}
}

// limit is how much a command may do for a set of manifests, as a multiple of [unit]: five
// seconds, on a machine that needs one for a unit.
const limit = 5

// unit is how long this process computes for something that has nothing to do with the program,
// so that the limit is the same on a slow machine and on a busy one: 30 MB of JSON are read.
var unit = sync.OnceValue(func() time.Duration {
	objects := make([]map[string]any, 1000)
	for i := range objects {
		objects[i] = map[string]any{"name": strconv.Itoa(i), "labels": map[string]any{"a": "b", "c": "d"}, "list": []int{1, 2, 3, i}}
	}
	raw, err := json.Marshal(objects)
	if err != nil {
		panic(err)
	}
	began := computed()
	for range (30 << 20) / len(raw) {
		if err := json.Unmarshal(raw, &objects); err != nil {
			panic(err)
		}
	}
	return computed() - began
})

// computed is how long the processors have worked for this process.
func computed() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// run runs a command, which must find nothing wrong and do no more than the limit.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	most := limit * unit()
	out, began := &testenv.Buffer{}, computed()
	code := cli.Run(t.Context(), command.Environment{
		Args: append([]string{"spillway"}, args...), Out: out, Err: out, Now: time.Now, Lookup: os.LookupEnv,
	})
	if code != 0 {
		t.Errorf("%s of %s ends with exit code %d:\n%s", args[0], name, code, out)
	}
	took := computed() - began
	if took > most {
		t.Errorf("%s of %s computes for %s, more than %d times what 30 MB of JSON take", args[0], name, took, limit)
	}
	t.Logf("%5.2f of %d units (%d ms)  %s %s", float64(took)/float64(unit()), limit, took.Milliseconds(), args[0], name)
}

// fetch has the go command download a module, and returns its folder.
func (m *module) fetch(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.path)
	cmd.Dir = t.TempDir() // it is no dependency of this module
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("download %s: %v: %s", m.path, err, raw)
	}
	var got struct {
		Dir string `json:"Dir"`
		Sum string `json:"Sum"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Sum != m.sum {
		t.Fatalf("%s has the checksum %s, and must have %s", m.path, got.Sum, m.sum)
	}
	return got.Dir
}
