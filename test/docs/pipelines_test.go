package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pipeline is what the action and the template say that is run.
type pipeline struct {
	Runs struct {
		Steps []struct {
			Name, Run string
		}
	}
	Prove struct {
		Script []string
	} `json:"spillway-prove"`
}

func readPipeline(t *testing.T, file string) (p pipeline) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPipelines runs the action and the template of docs/prove.md as their runners do, on a repository in which a
// change of config gets to all services at the same time.
func TestPipelines(t *testing.T) {
	dir, tools := t.TempDir(), programs(t)
	in := func(t *testing.T, script string, env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG=/nowhere", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.example")
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	example, err := filepath.Abs(filepath.Join(root, "examples", "prove", "services.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	gh := "#!/bin/sh\ncase \"$*\" in *--paginate*) cat former ;; *) echo \"$*\" >>comments ;; esac\n"
	if err := os.WriteFile(filepath.Join(tools, "gh"), []byte(gh), 0o700); err != nil {
		t.Fatal(err)
	}
	said, err := in(t, "git init -q . && mkdir deploy && cp "+example+" deploy && git add . && git commit -qm before && git rev-parse HEAD"+
		" && sed -i.bak 's/timeout: .*/timeout: 9s/' deploy/services.yaml && git commit -qam after")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	action, template := readPipeline(t, "action.yml"), readPipeline(t, ".gitlab/prove.gitlab-ci.yml")
	if len(action.Runs.Steps) != 2 || len(template.Prove.Script) != 1 {
		t.Fatalf("the action is %+v, the template %+v", action, template)
	}
	of := map[string]string{"action": action.Runs.Steps[0].Run, "template": template.Prove.Script[0]}
	for name, script := range of {
		for since, want := range map[string]string{strings.TrimSpace(said): "### Spillway: 1 broken rule\n", "HEAD": "### Spillway: no rule is broken\n"} {
			said, err := in(t, script, "MANIFESTS=deploy", "SINCE="+since, "REPORT="+filepath.Join(dir, name+".md"), "GITHUB_OUTPUT=/dev/null", "GITHUB_STEP_SUMMARY=/dev/null",
				"SPILLWAY_MANIFESTS=deploy", "SPILLWAY_SINCE="+since)
			if (err == nil) != (since == "HEAD") || !strings.Contains(said, want) {
				t.Errorf("%s since %s: %v: %s", name, since, err, said)
			}
		}
	}
	for _, former := range []string{"", "https://api.github.com/comments/1\n"} {
		if said, err := in(t, fmt.Sprintf("printf '%s' >former\n", former)+action.Runs.Steps[1].Run, "REPORT=action.md", "GITHUB_REPOSITORY=a/b", "NUMBER=7"); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	comments, err := os.ReadFile(filepath.Join(dir, "comments"))
	if want := "api --silent repos/a/b/issues/7/comments --field body=@action.md\napi --silent --method PATCH https://api.github.com/comments/1 --field body=@action.md\n"; err != nil || string(comments) != want {
		t.Errorf("%v: it comments with\n%s, want\n%s", err, comments, want)
	}
}
