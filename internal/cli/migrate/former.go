package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// former is a program whose work Spillway carries on.
type former struct {
	name string
	// rings do its work.
	rings []string
	// image is how the names of its images end, without tag and digest.
	image *regexp.Regexp
	// page is the one that says what differs.
	page string
	// args are those of the manager that it needs, which spillway install has, too.
	args []string
	// uses reports whether an object is one that it acts on.
	uses func(*unstructured.Unstructured) bool
	// names are its annotations and flags, with their counterparts.
	names *vocabulary.Former
}

// formers are all that can be changed over from.
func formers() []former {
	all := []former{
		{
			name: "wave", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)wave$`), page: "from-wave.md",
			uses: annotated(func(name string) bool { return slices.Contains(vocabulary.ConfigTracked.Aliases, name) }, isWorkload),
		},
		{
			name: "reloader", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)reloader(-ubi)?$`), page: "from-reloader.md",
			args: []string{"--" + command.ReloaderAnnotations}, uses: annotated(vocabulary.IsOfReloader, isReloaded),
		},
		{
			name: "rollout-operator", rings: []string{manager.RingZones}, image: regexp.MustCompile(`(^|/)rollout-operator(-boringcrypto)?$`), page: "from-rollout-operator.md",
			uses: func(u *unstructured.Unstructured) bool {
				return u.GetKind() == "StatefulSet" && vocabulary.GroupOf(u.GetLabels(), u.GetAnnotations()) != "" || u.GroupVersionKind().Group == "rollout-operator.grafana.com"
			},
		},
		{
			name: "kudo", rings: []string{manager.RingPlans}, image: regexp.MustCompile(`(^|/)kudobuilder/controller$`), page: "from-kudo.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == "kudo.dev" },
		},
		{
			name: fleeet, rings: []string{manager.RingFleet}, image: regexp.MustCompile(`(^|/)fleeet-control$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == "fleet.squaremo.dev" },
		},
		{
			name: fleeet + "-assemblage", rings: []string{manager.RingAssemblage}, image: regexp.MustCompile(`(^|/)fleeet-assemblage$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GetKind() == "Assemblage" },
		},
	}
	for i := range all {
		all[i].names = vocabulary.FormerOf(all[i].program())
	}
	return all
}

// program is the name that the parts of a former program share.
func (p *former) program() string { return strings.TrimSuffix(p.name, "-assemblage") }

// fleeet is the name of one of which two programs run, with the same beginning.
const fleeet = "fleeet"

// auto stands for whichever are found.
const auto = "auto"

// named are the former controllers of a name, all of them for [auto].
func named(name string) ([]former, error) {
	all := formers()
	if name == auto {
		return all, nil
	}
	of := slices.DeleteFunc(slices.Clone(all), func(p former) bool { return p.program() != name })
	if len(of) == 0 {
		return nil, fmt.Errorf("--from: %q is not known; use wave, reloader, rollout-operator, kudo, fleeet, or auto for what is found", name)
	}
	return of, nil
}

// annotated is true of objects of some kinds with an annotation whose name is one.
func annotated(is func(name string) bool, kinds func(*unstructured.Unstructured) bool) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		template, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
		for _, annotations := range []map[string]string{u.GetAnnotations(), template} {
			for name := range annotations {
				if is(name) && kinds(u) {
					return true
				}
			}
		}
		return false
	}
}

// isWorkload reports whether an object has a Pod template that is rolled.
func isWorkload(u *unstructured.Unstructured) bool {
	return slices.Contains(workload.Kinds(), u.GetKind())
}

// isReloaded reports whether an object is one that Reloader rolls: a workload, or a Rollout of Argo.
func isReloaded(u *unstructured.Unstructured) bool {
	return isWorkload(u) || u.GroupVersionKind() == workload.ArgoVersion.WithKind(workload.ArgoRollout)
}

// container is the one of a workload that has an image of the former controller, nil if there is none, and the tag of the image.
func (p *former) container(u *unstructured.Unstructured) (c *corev1.Container, tag string) {
	pod := &corev1.PodSpec{}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	if !isWorkload(u) || runtime.DefaultUnstructuredConverter.FromUnstructured(spec, pod) != nil {
		return nil, ""
	}
	for i := range pod.Containers {
		image, _, _ := strings.Cut(pod.Containers[i].Image, "@")
		tag = ""
		if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
			image, tag = image[:at], image[at+1:]
		}
		if p.image.MatchString(image) {
			return &pod.Containers[i], tag
		}
	}
	return nil, ""
}

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
		if known := p.names.FlagOf(name); known != nil && known.As == vocabulary.WatchNamespaces {
			namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
			flags = append(flags, given{Name: name, Value: value, Instead: watches})
			continue
		}
		flags = append(flags, p.carriedOver(name, value, ours))
	}
	more, own := p.variablesOf(c, ours, namespace)
	flags, namespaces = append(flags, more...), append(namespaces, own...)
	slices.Sort(namespaces)
	return flags, slices.Compact(namespaces)
}

// watches is what names the namespaces to watch.
const watches = "spillway install --" + vocabulary.WatchNamespaces

// variablesOf is what a former controller reads of its environment.
func (p *former) variablesOf(c *corev1.Container, ours *pflag.FlagSet, namespace string) (flags []given, namespaces []string) {
	for _, v := range c.Env {
		known := p.names.FlagOf(v.Name)
		own := v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		switch {
		case known == nil:
		case known.As != vocabulary.WatchNamespaces:
			g := p.carriedOver(v.Name, v.Value, ours)
			if g.Manager == "" {
				g.Value = "" // it may be a secret
			}
			flags = append(flags, g)
		case own || v.Value != "":
			namespaces = append(namespaces, cmp.Or(v.Value, namespace))
			flags = append(flags, given{Name: v.Name, Value: cmp.Or(v.Value, namespace), Instead: watches})
		}
	}
	return flags, namespaces
}

// carriedOver is what becomes of one flag, or of a variable.
func (p *former) carriedOver(name, value string, ours *pflag.FlagSet) given {
	g, target, known := given{Name: name, Value: value}, name, p.names.FlagOf(name)
	if known != nil {
		target = known.Target()
	}
	f := ours.Lookup(target)
	switch {
	case known != nil && target == "":
		g.Instead = plain(cmp.Or(known.Differs, "nothing is needed: spillway install sets its own"))
	case f == nil:
		g.Instead, g.unknown = "it is not known"+near(name, ours), true
	default:
		if value == "" {
			value = cmp.Or(f.NoOptDefVal, "true")
		}
		if err := ours.Set(target, value); err != nil {
			g.Instead, g.unknown = "the manager does not accept the value: "+err.Error(), true
			break
		}
		g.Manager = "--" + target + "=" + value
	}
	return g
}

// plain is text of a page as a terminal shows it: without marks for code, and with the file that a link leads to behind its text.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1 ($2)"), "`", "")
}

var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// near suggests a flag of the manager.
func near(name string, ours *pflag.FlagSet) string {
	var names []string
	ours.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := nearest.Meant(name, names); meant != "" {
		return "; the manager has --" + meant
	}
	return ""
}
