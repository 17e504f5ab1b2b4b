package plans_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// The size of the packages that people run: as many parameters and templates as those of
// databases and queues have.
const (
	settings   = 210
	perFile    = 10
	configMaps = settings / perFile
)

// changed copies a package, and replaces one text in some of its files: "before|after".
func changed(t *testing.T, from string, files map[string]string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "package")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for name, change := range files {
		before, after, _ := strings.Cut(change, "|")
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(raw), before) {
			t.Fatalf("%s has no %q: %v", name, before, err)
		}
		write(t, filepath.Join(dir, name), strings.Replace(string(raw), before, after, 1))
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// verifies checks a package, without a cluster.
func verifies(t *testing.T, dir, want string) {
	t.Helper()
	out := &testenv.Buffer{}
	cli.Run(t.Context(), command.Environment{
		Args: []string{"spillway", "package", "verify", dir}, Out: out, Err: out, Now: time.Now, Lookup: func(string) (string, bool) { return "", false },
	})
	if !strings.Contains(out.String(), want) {
		t.Errorf("verify %s does not say %q:\n%s", dir, want, out)
	}
}

// stream writes the package in testdata/packages/stream with all of its settings: of each
// type, and used by a template.
func stream(t *testing.T) (dir string) {
	t.Helper()
	dir = changed(t, "testdata/packages/stream", nil)
	raw, err := os.ReadFile(filepath.Join(dir, "params.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	params, resources := strings.Builder{}, strings.Builder{}
	params.Write(raw)
	for file := range configMaps {
		template := strings.Builder{}
		fmt.Fprintf(&template, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-settings-%02d\ndata:\n", file)
		for i := range perFile {
			n := file*perFile + i
			kind := []string{
				"type: string\n  default: text", "type: integer\n  default: 7", "type: number\n  default: 0.5", "type: boolean\n  default: true",
				"type: array\n  default: [a, b]", "type: map\n  default: {a: {b: c}}", "default: \"1\"\n  enum: [\"1\", \"2\"]", "required: false\n  default: \"\"",
				"default: x\n  immutable: true", "default: z\n  trigger: deploy",
			}[i]
			value := []string{"{{ .Params.%s | quote }}", "{{ add .Params.%s 1 | quote }}", "{{ mulf .Params.%s 2.0 | toString | quote }}", "{{ ternary \"on\" \"off\" (eq .Params.%s \"true\") | quote }}",
				"{{ join \",\" .Params.%s | quote }}", "{{ .Params.%s | toYaml | quote }}", "{{ .Params.%s | squote }}", "{{ default \"none\" .Params.%s | upper | quote }}",
				"{{ printf \"%%s-%%d\" .Params.%s 1 | sha256sum | trunc 8 | quote }}", "{{ .Params.%s | b64enc | b64dec | quote }}"}[i]
			name := fmt.Sprintf("SETTING_%03d", n)
			fmt.Fprintf(&params, "- name: %s\n  description: Setting %d\n  group: settings\n  %s\n", name, n, kind)
			fmt.Fprintf(&template, "  s%03d: "+value+"\n", n, name)
		}
		write(t, fmt.Sprintf("%s/templates/settings/%02d.yaml", dir, file), template.String())
		fmt.Fprintf(&resources, "    - settings/%02d.yaml\n", file)
	}
	write(t, dir+"/params.yaml", params.String())
	raw, err = os.ReadFile(filepath.Join(dir, "operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/operator.yaml", strings.Replace(string(raw), "    - settings.yaml\n", resources.String(), 1))
	return dir
}

// TestAPackageOfFullSize is installed, changed, upgraded and removed as it is: with more than
// 200 parameters and 30 templates, Pipes, Toggles, another package, RoleBindings, a Job whose
// template cannot change, and claims in a step of their own.
func TestAPackageOfFullSize(t *testing.T) {
	c := newCluster(t)
	c.files = filesOf{"/keys/tls.crt": "CERT", "/keys/env": "TOKEN=x\n"}
	c.provision()
	c.manage()
	first := stream(t)
	verifies(t, first, "no problems found")
	c.says("package install "+first+" feed --wait --timeout 5m", "operatorversion/quorum-0.1.0 created", "plan deploy COMPLETE")
	c.feeds("2", "s000=text s001=8 s002=1 s003=on s004=a,b s005=a: | s006=1 s007=NONE s009=z")
	if got := c.data("feed-quorum")["size"]; got != "2" {
		t.Errorf("the other package has size %q", got)
	}
	if err := c.get(&rbacv1.RoleBinding{}, "feed"); err != nil {
		t.Error(err)
	}
	before, _ := c.job("feed-topics", "TOPICS")

	c.says("package update instance/feed -p NODES=3 --wait --timeout 5m", "plan scale runs (NODES)", "plan scale COMPLETE")
	c.says("package update instance/feed -p SETTING_004=[c] -p TOPICS=[new] -p MONITOR=true --wait --timeout 5m", "plan update COMPLETE")
	c.feeds("3", "s004=c")
	after, topics := c.job("feed-topics", "TOPICS")
	if after == before || topics != "new" {
		t.Errorf("the Job was %s, and is %s with the topics %q", before, after, topics)
	}
	c.fails("package update instance/feed -p SETTING_008=z", "spec.parameters.SETTING_008: is immutable")
	c.fails("package update instance/feed -p SETTING_006=3", "spec.parameters.SETTING_006: must be one of 1, 2")

	next := changed(t, first, map[string]string{
		"operator.yaml": "operatorVersion: 0.1.0|operatorVersion: 0.2.0", "templates/nodes.yaml": "image: stream:1|image: stream:2",
		"templates/settings/20.yaml": "-settings-20|-settings-last",
	})
	c.says("package upgrade instance/feed "+next+" --yes --wait --timeout 5m", "plan upgrade COMPLETE")
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "feed"); err != nil || set.Spec.Template.Spec.Containers[0].Image != "stream:2" {
		t.Errorf("the nodes run %v, %v", set.Spec.Template.Spec.Containers, err)
	}
	if err := c.get(&corev1.ConfigMap{}, "feed-settings-20"); !apierrors.IsNotFound(err) {
		t.Errorf("what is no longer rendered exists: %v", err)
	}
	c.refusals(next)
	c.says("package uninstall instance/feed --yes --wait --timeout 2m", "instance/feed deleted")
	c.gone(&v1beta1.Instance{}, "feed")
}

// feeds checks the nodes of the Instance, and some settings as NAME=VALUE.
func (c *cluster) feeds(nodes, settings string) {
	c.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "feed"); err != nil || fmt.Sprint(set.Status.ReadyReplicas) != nodes {
		c.t.Errorf("%d nodes are ready, %v", set.Status.ReadyReplicas, err)
	}
	got := c.data("feed-settings-00")
	for setting := range strings.FieldsSeq(settings) {
		if name, value, ok := strings.Cut(setting, "="); ok && !strings.HasPrefix(got[name], value) {
			c.t.Errorf("setting %s is %q, not %q", name, got[name], value)
		}
	}
	if err := c.get(&policyv1.PodDisruptionBudget{}, "feed"); err != nil {
		c.t.Error(err)
	}
}

// refusals: where the API server refuses a version, a kind or a field, the sentence says what
// to do.
func (c *cluster) refusals(from string) {
	c.t.Helper()
	for name, test := range map[string]struct{ file, change, verify, plan string }{
		"old":       {"templates/budget.yaml", "policy/v1|policy/v1beta1", "policy/v1", "use policy/v1"},
		"field":     {"templates/service.yaml", "port: 9092|port: no", "", "spec.ports"},
		"immutable": {"templates/nodes.yaml", "serviceName: {{ .Name }}|serviceName: other", "", "an immutable field would change"},
	} {
		dir := changed(c.t, from, map[string]string{"operator.yaml": "operatorVersion: 0.2.0|operatorVersion: 0.3.0-" + name})
		dir = changed(c.t, dir, map[string]string{test.file: test.change})
		if test.verify != "" {
			verifies(c.t, dir, test.verify)
		}
		c.fails("package upgrade instance/feed "+dir+" --yes", test.plan)
	}
}
