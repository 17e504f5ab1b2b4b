package migrate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/nearest"
)

// given is a flag or a variable of a former controller, and what becomes of it.
type given struct {
	// Name is the flag without dashes, or the variable, and Value what it is set to.
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	// Manager is the argument of the manager that has the same effect, empty if there is none.
	Manager string `json:"manager,omitempty"`
	// Instead says what has its effect, or why none is needed.
	Instead string `json:"instead,omitempty"`
	// unknown is true of what is neither carried over nor explained.
	unknown bool
}

// installed are the flags that an installation sets itself: where to serve, whom to follow, what to log.
func installed(name string) bool {
	return slices.ContainsFunc([]string{"leader-elect", "metrics-", "health-probe-", "zap-", "kubeconfig", "log.", "server.", "server-tls.", "kubernetes.client", "kubernetes.cluster-domain", "use-zone-tracker", "zone-tracker."}, func(lead string) bool { return strings.HasPrefix(name, lead) })
}

// flagsOf reads the arguments and the variables of a former controller. Namespaces are those that it watches, none for all.
func (p *former) flagsOf(c *corev1.Container, ours *pflag.FlagSet, namespace string) (flags []given, namespaces []string) {
	args := slices.Concat(c.Command[min(1, len(c.Command)):], c.Args)
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || name == "" {
			continue // the name of a program, or of a command
		}
		if f := ours.Lookup(name); !has && (f == nil || f.NoOptDefVal == "") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i, value = i+1, args[i+1]
		}
		if name == "namespaces" || name == "kubernetes.namespace" {
			namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
			flags = append(flags, given{Name: name, Value: value, Instead: watches})
			continue
		}
		flags = append(flags, p.carriedOver(name, value, ours))
	}
	if p.name == "reloader" {
		more, own := variablesOf(c, namespace)
		flags, namespaces = append(flags, more...), append(namespaces, own...)
	}
	slices.Sort(namespaces)
	return flags, slices.Compact(namespaces)
}

// watches is what names the namespaces to watch.
const watches = "spillway install --watch-namespaces"

// variablesOf is what Reloader reads of its environment.
func variablesOf(c *corev1.Container, namespace string) (flags []given, namespaces []string) {
	for _, v := range c.Env {
		own := v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		switch {
		case v.Name == "KUBERNETES_NAMESPACE" && (own || v.Value != ""):
			namespaces = append(namespaces, cmp.Or(v.Value, namespace))
			flags = append(flags, given{Name: v.Name, Value: cmp.Or(v.Value, namespace), Instead: watches})
		case strings.HasPrefix(v.Name, "ALERT_"):
			flags = append(flags, given{Name: v.Name, Instead: "a Notifier (notify.md)"}) // its value may be a secret
		}
	}
	return flags, namespaces
}

// carriedOver is what becomes of one flag.
func (p *former) carriedOver(name, value string, ours *pflag.FlagSet) given {
	g := given{Name: name, Value: value}
	f := ours.Lookup(name)
	switch {
	case name == "enable-webhooks":
		g.Instead = "spillway install --webhooks, which is on by default"
	case installed(name):
		g.Instead = "nothing is needed: spillway install sets its own"
	case f != nil && p.flags[name] == "":
		if value == "" {
			value = cmp.Or(f.NoOptDefVal, "true")
		}
		if err := ours.Set(name, value); err != nil {
			g.Instead, g.unknown = "the manager does not accept the value: "+err.Error(), true
			break
		}
		g.Manager = "--" + name + "=" + value
	case p.flags[name] != "":
		g.Instead = p.flags[name]
	default:
		g.Instead, g.unknown = "it is not known"+near(name, ours), true
	}
	return g
}

// near suggests a flag of the manager.
func near(name string, ours *pflag.FlagSet) string {
	var names []string
	ours.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := nearest.Meant(name, names); meant != "" {
		return "; the manager has --" + meant
	}
	return ""
}
