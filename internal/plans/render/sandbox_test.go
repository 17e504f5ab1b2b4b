package render

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestWhatTakesTooMuchEndsAlone renders templates that would end the manager, or keep it
// busy for ever: each fails with the limit that it exceeds, and the next one is rendered.
func TestWhatTakesTooMuchEndsAlone(t *testing.T) {
	const time, memory, depth = "it takes more than 2s of processor time", "it needs more than 64 MiB of memory", "it is nested too deeply, or contains itself"
	double := `{{ $s := "0123456789abcdef" }}` + strings.Repeat(`{{ $s = print $s $s }}`, 28)
	share := `{{ $l := list 1 }}` + strings.Repeat(`{{ $l = list $l $l }}`, 40)
	for template, want := range map[string][]string{
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`:                                                                    {depth, memory},
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}`:                                                                   {depth, memory, "cycle"},
		`{{ $d := dict }}{{ $_ := set $d "a" (list $d) }}{{ deepCopy $d }}`:                                                          {depth, memory, time},
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $e := dict }}{{ $_ := set $e "a" $e }}{{ deepEqual $d $e }}{{ $d | toString }}`: {depth, memory},
		strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16):                                                                      {time},
		`{{ range $i := until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`:                                                   {time, memory},
		double + `{{ len $s }}`:   {memory},
		share + `{{ print $l }}`:  {memory, time},
		share + `{{ toJson $l }}`: {memory, time},
		`{{ printf "%1000000d%1000000d" 1 2 | len }}` + strings.Repeat(`{{ $x := printf "%999999d" 1 }}`, 3000):                {time, memory},
		`{{ regexMatch "` + strings.Repeat("(x{100}){10}", 2000) + `" "x" }}`:                                                  {memory, time},
		strings.Repeat("{{ if true }}", 100_000) + strings.Repeat("{{ end }}", 100_000):                                        {depth, memory},
		`{{ "` + strings.Repeat("{{", 100) + strings.Repeat("(", 10_000) + `" }}` + "{{ " + strings.Repeat("(", 100_000) + "1": {"cannot be parsed", depth},
	} {
		name := fmt.Sprintf("%.60s", template)
		_, err := Render("x.yaml", template, context())
		if err == nil || errors.Is(err, ErrUnavailable) || !containsAny(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if got, err := Render("y.yaml", "{{ .Name }}", context()); got != "web" || err != nil {
			t.Errorf("after %s: %q, %v", name, got, err)
		}
	}
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// A manifest of very many values is small as text.
func TestAManifestThatIsTooMuch(t *testing.T) {
	_, err := Objects("x.yaml", `a: [{{ range until 90000 }}a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,{{ end }}a]`, context(), "")
	if err == nil || !strings.Contains(err.Error(), "it needs more than 64 MiB of memory") {
		t.Error(err)
	}
}

func TestObjects(t *testing.T) {
	objects, err := Objects("x.yaml", "kind: A\napiVersion: v1\nmetadata: {name: '{{ .Name }}'}\nnumbers: [1, 1.5, 10000000]\n---\nkind: B\napiVersion: v1\nmetadata: {name: b}", context(), "")
	if err != nil || len(objects) != 2 || objects[0].GetName() != "web" || fmt.Sprintf("%T", objects[0].Object["numbers"].([]any)[2]) != "int64" {
		t.Errorf("%v %v", objects, err)
	}
	if _, err := Objects("x.yaml", "a: [", context(), ""); err == nil || !strings.HasPrefix(err.Error(), "template x.yaml: document 1: invalid YAML") {
		t.Error(err)
	}
	for _, metadata := range []string{"", "\nmetadata:", "\nmetadata: {labels: {a: b}}"} {
		objects, err := Objects("x.yaml", "kind: A\napiVersion: v1"+metadata, context(), "named")
		if err != nil || len(objects) != 1 || objects[0].GetName() != "named" {
			t.Errorf("%q: %v %v", metadata, objects, err)
		}
		if _, err := Objects("x.yaml", "kind: A\napiVersion: v1"+metadata, context(), ""); err == nil || !strings.Contains(err.Error(), "A has no metadata.name") {
			t.Errorf("%q: %v", metadata, err)
		}
	}
}

// Numbers are what they are without another process.
func TestNumbers(t *testing.T) {
	c := context()
	c.Params = map[string]any{"LIST": []any{3.0, 1e6, 0.5, int64(7), true, nil, "x", 1e300, int64(1) << 62}}
	const template = `{{ range .Params.LIST }}{{ kindOf . }} {{ . }}, {{ end }}`
	want, err := execute("x.yaml", template, &c)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Render("x.yaml", template, c); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// A process that was ended while it was idle is replaced, and templates are rendered side
// by side.
func TestAProcessThatWasEnded(t *testing.T) {
	for range 3 {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				c := context()
				c.Name = fmt.Sprint("app", i)
				if got, err := Render("x.yaml", "{{ .Name }}", c); got != c.Name || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		group.Wait()
		for range maxProcesses {
			p := <-shared().places
			if p != nil {
				_ = p.command.Process.Signal(syscall.SIGKILL)
			}
			shared().places <- p
		}
	}
}

// The process that renders sees nothing of the environment, and starts no other.
func TestTheProcessIsAlone(t *testing.T) {
	t.Setenv("SECRET", "x")
	if _, err := Render("x.yaml", "{{ .Name }}", context()); err != nil {
		t.Fatal(err)
	}
	p := <-shared().places
	for p == nil {
		shared().places <- p
		p = <-shared().places
	}
	defer func() { shared().places <- p }()
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.command.Process.Pid)); err == nil && string(env) != variable+"=true\x00GOTRACEBACK=none\x00" {
		t.Errorf("%q", env)
	}
}
