package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Only the profile is removed, and only when a container is created.
func TestTheProfileIsRemoved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"ociVersion":"1.2.0","linux":{"seccomp":{"defaultAction":"x"},"cgroupsPath":"/a"},"process":{"cwd":"/"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeProfile(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]string
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "ociVersion")
	if raw, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if len(got["linux"]) != 1 || got["linux"]["cgroupsPath"] != "/a" || got["process"]["cwd"] != "/" {
		t.Errorf("the container is %s", raw)
	}
}

func TestTheBundle(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--root", "/r", "--log", "/l", "create", "--bundle", "/b", "id"}, "/b"},
		{[]string{"run", "-b", "/b", "id"}, "/b"},
		{[]string{"create", "--bundle=/b", "id"}, "/b"},
		{[]string{"--root", "/r", "delete", "--force", "id"}, ""},
		{nil, ""},
	} {
		if got := bundleOf(test.args); got != test.want {
			t.Errorf("%v: %q, want %q", test.args, got, test.want)
		}
	}
}
