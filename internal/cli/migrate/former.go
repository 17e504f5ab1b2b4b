package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
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
	// args are those of the manager that it needs.
	args []string
	// uses reports whether an object is one that it acts on.
	uses func(*unstructured.Unstructured) bool
	// flags says what has the effect of one of its flags, where the manager has none of the name.
	flags map[string]string
}

// formers are all that can be changed over from.
func formers() []former {
	reloads := map[string]string{}
	for _, f := range vocabulary.ReloaderFlags() {
		if !f.Accepted {
			reloads[f.Name] = f.Differs
		}
	}
	return []former{
		{
			name: "wave", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)wave$`), page: "from-wave.md",
			uses: annotated(func(name string) bool { return slices.Contains(vocabulary.ConfigTracked.Aliases, name) }),
		},
		{
			name: "reloader", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)reloader(-ubi)?$`), page: "from-reloader.md",
			args: []string{"--" + command.ReloaderAnnotations}, uses: annotated(vocabulary.IsOfReloader), flags: reloads,
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
			name: "fleeet", rings: []string{manager.RingFleet}, image: regexp.MustCompile(`(^|/)fleeet-control$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == "fleet.squaremo.dev" },
		},
		{
			name: "fleeet-assemblage", rings: []string{manager.RingAssemblage}, image: regexp.MustCompile(`(^|/)fleeet-assemblage$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GetKind() == "Assemblage" },
		},
	}
}

// auto stands for whichever are found.
const auto = "auto"

// named are the former controllers of a name, all of them for [auto].
func named(name string) ([]former, error) {
	all := formers()
	if name == auto {
		return all, nil
	}
	of := slices.DeleteFunc(slices.Clone(all), func(p former) bool { return strings.TrimSuffix(p.name, "-assemblage") != name })
	if len(of) == 0 {
		return nil, fmt.Errorf("--from: %q is not known; use wave, reloader, rollout-operator, kudo, fleeet, or auto for what is found", name)
	}
	return of, nil
}

// annotated is true of workloads with an annotation whose name is one.
func annotated(is func(name string) bool) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		template, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
		for _, annotations := range []map[string]string{u.GetAnnotations(), template} {
			for name := range annotations {
				if is(name) && isWorkload(u) {
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
