package manifests_test

import (
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/manifests"
)

// Which image is installed: that of the values, and else the program's own.
func TestImageOfValues(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, test := range map[string]struct{ values, own, want string }{
		"none":                            {``, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest},
		"a digest":                        {`image: {digest: "` + digest + `"}`, "ghcr.io/spillway-dev/spillway:v0.1.0", "ghcr.io/spillway-dev/spillway@" + digest},
		"a tag":                           {`image: {tag: mine}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "ghcr.io/spillway-dev/spillway:mine"},
		"a repository":                    {`image: {repository: example.test/spillway}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "example.test/spillway:v0.1.0"},
		"a repository with a port":        {`image: {repository: "example.test:5000/spillway"}`, "ghcr.io/spillway-dev/spillway:v0.1.0@" + digest, "example.test:5000/spillway:v0.1.0"},
		"the own one at a port":           {`image: {repository: example.test/spillway}`, "localhost:5000/spillway:v0.1.0", "example.test/spillway:v0.1.0"},
		"the own one at a port, by none":  {`image: {repository: example.test/spillway}`, "localhost:5000/spillway", "example.test/spillway"},
		"the own one at a port, a digest": {`image: {repository: example.test/spillway}`, "localhost:5000/spillway@" + digest, "example.test/spillway"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := manifests.ParseValues([]byte(test.values))
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Options("flow", "v0.1.0", test.own).Image; got != test.want {
				t.Errorf("it installs %s, want %s", got, test.want)
			}
		})
	}
}
