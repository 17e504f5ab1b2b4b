package pipe

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeep(t *testing.T) {
	secret, config := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}, &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap"}}
	for name, test := range map[string]struct {
		file    File
		content string
		want    string
	}{
		"an empty file":         {File{Path: "/a/b", Object: secret}, "", "map[data:map[b:] kind:Secret]"},
		"text":                  {File{Path: "/a/b", Object: config}, "x", "map[data:map[b:x] kind:ConfigMap]"},
		"bytes":                 {File{Path: "/a/b", Object: config}, "\xff", "map[binaryData:map[b:/w==] kind:ConfigMap]"},
		"lines":                 {File{Path: "/a/b", Env: true, Object: config}, "# c\n\nA=1\nB=x=y\r\n", "map[data:map[A:1 B:x=y] kind:ConfigMap]"},
		"lines that are none":   {File{Path: "/a/b", Env: true, Object: config}, "A", "file /a/b: line 1: must be KEY=VALUE"},
		"more than can be kept": {File{Path: "/a/b", Object: config}, strings.Repeat("x", MaxFile+1), "file /a/b is longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := test.file.Keep([]byte(test.content))
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(u.Object)
			}
			if got != test.want {
				t.Error(got)
			}
		})
	}
}
