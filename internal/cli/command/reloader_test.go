package command

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// reloaderOf are the options of the config ring that some arguments of Reloader give.
func reloaderOf(args ...string) (*reloader.Options, error) {
	rings, flags := RingFlags{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	rings.Add(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o, err := rings.Options(func() time.Time { return time.Unix(1, 0) })
	return o.Reloader, err
}

// Each annotation that has a flag is read by the name that the flag has.
func TestEachAnnotationOfReloaderIsRenamed(t *testing.T) {
	t.Parallel()
	for _, k := range vocabulary.ReloaderKeys() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			o, err := reloaderOf("--reloader-annotations", "--"+k.Flag+"=example.com/other")
			if err != nil || len(o.Names) != 1 || o.Names[k.Name] != "example.com/other" {
				t.Errorf("%+v, %v", o, err)
			}
			if k.Instead == "" {
				t.Error("nothing is said to do the same")
			}
			if _, err := reloaderOf("--" + k.Flag + "=example.com/other"); err == nil || !strings.Contains(err.Error(), "--"+k.Flag+" has no effect") {
				t.Errorf("without the flag: %v", err)
			}
		})
	}
}

// Each other flag of Reloader that is accepted has an effect, and is refused where it would have none.
func TestEachFlagOfReloader(t *testing.T) {
	t.Parallel()
	shared := map[string]bool{"namespaces": true, "log-format": true, "log-level": true, vocabulary.ReloaderNamespace: true} // they are Spillway's as well, or no flag
	values := map[string]string{
		"namespaces-to-ignore": "kube-system", "resource-label-selector": "app=x", "resources-to-ignore": "secrets", "namespace-selector": "team=shop", "ignored-workload-types": "jobs",
	}
	for _, f := range vocabulary.ReloaderFlags() {
		if shared[f.Name] {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			value := "true"
			if of := values[f.Name]; of != "" {
				value = of
			}
			given := "--" + f.Name + "=" + value
			o, err := reloaderOf("--reloader-annotations", given)
			if !f.Accepted {
				if err == nil || f.Differs == "" {
					t.Errorf("it is accepted, or nothing is said of it: %v", err)
				}
				return
			}
			if err != nil || o == nil {
				t.Fatal(err)
			}
			if _, err := reloaderOf(given); err == nil || !strings.Contains(err.Error(), "has no effect: annotations of Reloader are not read; add --reloader-annotations") {
				t.Errorf("without the flag: %v", err)
			}
		})
	}
	if _, err := reloaderOf("--reloader-annotations", "--webhook-url=http://x"); err == nil || !strings.Contains(err.Error(), "create a Notifier") {
		t.Errorf("a URL to call in place of a roll: %v", err)
	}
	if _, err := reloaderOf("--reloader-annotations", "--namespace-selector=a", "--namespaces=shop"); err == nil {
		t.Error("the labels of namespaces are read in one namespace")
	}
	all, err := reloaderOf("--reloader-annotations", "--auto-reload-all", "--namespaces-to-ignore=a,b", "--resources-to-ignore=secrets", "--resource-label-selector=app=x", "--reload-on-create=true", "--reload-on-delete=true", "--enable-csi-integration", "--namespace-selector=team:*")
	if err != nil || !all.AutoAll || !all.Skips("b") || len(all.IgnoredKinds) != 1 || all.Selector.String() != "app=x" || !all.OnCreate || !all.OnDelete || !all.Classes || all.Since.IsZero() || all.Namespaces.Selector.String() != "team" {
		t.Errorf("%+v, %v", all, err)
	}
	if o, err := reloaderOf(); o != nil || err != nil {
		t.Errorf("nothing is asked for: %+v, %v", o, err)
	}
	for _, wrong := range []string{"--namespace-selector=a b", "--resources-to-ignore=pods", "--resource-label-selector=a b", "--ignored-workload-types=pods", "--reload-on-create=yes", "--is-Argo-Rollouts=yes"} {
		name, _, _ := strings.Cut(wrong, "=")
		if _, err := reloaderOf("--reloader-annotations", wrong); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// Flags that have no effect are named at the start, with what does the same.
func TestFlagsOfReloaderWithoutEffect(t *testing.T) {
	t.Parallel()
	rings, flags := RingFlags{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
	rings.Add(flags)
	if err := flags.Parse([]string{"--reloader-annotations", "--enable-ha", "--reload-strategy=annotations", "--leader-election-retry-period=2s"}); err != nil {
		t.Fatal(err)
	}
	notes := rings.ReloaderNotes()
	if len(notes) != 3 || notes["enable-ha"] == "" || notes["reload-strategy"] == "" || notes["leader-election-retry-period"] == "" {
		t.Errorf("%v", notes)
	}
}

// The namespace in Reloader's environment is watched, with its annotations and without --namespaces.
func TestTheNamespaceOfReloader(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--reloader-annotations": "shop", "": "", "--reloader-annotations --namespaces=a": "a"} {
		rings, flags := RingFlags{}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
		rings.Add(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		rings.WatchAsReloader(func(name string) (string, bool) { return "shop", name == "KUBERNETES_NAMESPACE" })
		if got := strings.Join(rings.namespaces, ","); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
