package kustomize_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/hack/release/kustomize"
)

// What kustomize builds of the base and of each overlay is what the command installs with the
// same values, object by object.
func TestSame(t *testing.T) {
	program := compile(t)
	export := func(values string) ([]byte, error) {
		cmd := exec.Command(program, "install", "--export", "--values=-")
		cmd.Stdin, cmd.Env = strings.NewReader(values), append(os.Environ(), "KUBECONFIG=/dev/null")
		return cmd.Output()
	}
	files, err := kustomize.Files(export)
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsInMemory()
	for name, content := range files {
		if err := disk.WriteFile("/"+name, content); err != nil {
			t.Fatal(err)
		}
	}
	check := func(folder, values string) int {
		t.Helper()
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, folder)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		want, err := export(values)
		if err != nil {
			t.Fatal(err)
		}
		return compare(t, folder, objects(t, raw), objects(t, want))
	}
	n := check("/base", "")
	for _, o := range kustomize.Overlays() {
		if got := check("/overlays/"+o.Name, o.Values); got == 0 {
			t.Errorf("overlay %s is empty", o.Name)
		}
		if len(files["overlays/"+o.Name+"/kustomization.yaml"]) > len(files["base/spillway.yaml"])/2 {
			t.Errorf("overlay %s repeats the base, of %d objects", o.Name, n)
		}
	}
}

func compare(t *testing.T, folder string, got, want map[string]any) int {
	t.Helper()
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: %s is\n%v\nwant\n%v", folder, key, got[key], want[key])
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("%s: %s is only there", folder, key)
		}
	}
	return len(want)
}

func objects(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for part := range strings.SplitSeq("\n"+string(raw), "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		if o != nil {
			metadata, _ := o["metadata"].(map[string]any)
			all[fmt.Sprint(o["kind"], metadata["namespace"], metadata["name"])] = o
		}
	}
	return all
}

func compile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spillway")
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "./cmd/spillway")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}
