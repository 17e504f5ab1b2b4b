package explain

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
)

// inNamespace returns where an object is, as the end of a sentence; nothing of an object
// of the cluster.
func inNamespace(ref describe.Ref) string {
	if ref.Namespace == "" {
		return ""
	}
	return " in namespace " + ref.Namespace
}

// namespaceFlag returns the flag that names the namespace of an object, with a blank before
// it; nothing of an object of the cluster.
func namespaceFlag(ref describe.Ref) string {
	if ref.Namespace == "" {
		return ""
	}
	return " -n " + shell.Quote(ref.Namespace)
}

// known are the groups of Kubernetes, Flux and Spillway, of which the kind alone says
// what is meant.
var ownGroups = []string{"", "apps", "batch", "policy", "kudo.dev", "spillway.dev", "fleet.squaremo.dev", "rollout-operator.grafana.com",
	"kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"}

// again is the command that reads an object, or, for a reference to none, the one that checks
// whether anything can be seen.
func (a *asker) again(ref describe.Ref) string {
	if ref.APIVersion == "" && slices.Contains(describe.NoObjects, ref.Kind) {
		return a.command("spillway check")
	}
	return a.kubectl("get", ref)
}

// kubectl is a command about an object, in the cluster that it is in.
func (a *asker) kubectl(verb string, ref describe.Ref, args ...string) string {
	return a.commandAbout("kubectl "+verb, typed(ref), ref.Namespace, args)
}

// typed names an object for kubectl: with its group, where the kind alone could
// belong to another project.
func typed(ref describe.Ref) string {
	if !isForeign(ref) {
		return ref.String()
	}
	return resourceIn(ref) + "/" + ref.Name
}

// resourceIn is the kind of a reference, as kubectl takes it.
func resourceIn(ref describe.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if isForeign(ref) {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		return kind + "." + group
	}
	return kind
}

// isForeign is true of a kind of another project, whatever its name: a Service of Knative
// is none of Kubernetes.
func isForeign(ref describe.Ref) bool {
	group, version, grouped := strings.Cut(ref.APIVersion, "/")
	return grouped && foreign(group, version) != ""
}

// foreign is the apiVersion of a kind that its name alone does not identify.
func foreign(group, version string) string {
	if slices.Contains(ownGroups, group) {
		return ""
	}
	return group + "/" + version
}

// spillway is a command of our own about an object.
func (a *asker) spillway(verb string, ref describe.Ref, args ...string) string {
	return a.commandAbout("spillway "+verb, ref.String(), ref.Namespace, args)
}

// commandAbout is a command about an object of a namespace, empty for one of the cluster. The flags are
// quoted already.
func (a *asker) commandAbout(command, object, namespace string, args []string) string {
	words := []string{object}
	if namespace != "" {
		words = append(words, "-n", namespace)
	}
	return strings.Join(slices.Concat([]string{command, shell.Join(append(words, args...)...)}, a.Flags), " ")
}

// command is a command that is about no object in particular; what it has of users is quoted. What its output goes
// through knows nothing of clusters.
func (a *asker) command(command string) string {
	command, filter, filtered := strings.Cut(command, " | ")
	words := slices.Concat([]string{command}, a.Flags)
	if filtered {
		words = append(words, "|", filter)
	}
	return strings.Join(words, " ")
}
