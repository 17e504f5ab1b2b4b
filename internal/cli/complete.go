package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/fleet"
	"github.com/spillway-dev/spillway/internal/cli/lifecycle"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/packages/repository"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

const (
	// completionPatience is how long a person who types waits for the cluster.
	completionPatience = 2 * time.Second
	// completionsAtMost bounds how many names are asked for.
	completionsAtMost = 500
)

// completer completes what a person types, by asking the cluster. On an error it
// completes nothing and prints nothing: an error in the middle of a line does not help.
type completer struct {
	lookup func(string) (string, bool)
}

// complete lets a command complete its arguments, as its usage names them, and its flags.
func (c completer) complete(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil {
		words := strings.Fields(cmd.Use)[1:]
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return c.argument(cmd, wordAt(words, len(args)), args, typed)
		}
	}
	flags := map[string]cobra.CompletionFunc{}
	for flag, names := range map[string]func(*asking) []string{
		"namespace": (*asking).namespaces, "namespaces": (*asking).namespaces, "watch-namespaces": (*asking).namespaces,
		"cluster": (*asking).clusters, "stage": (*asking).stages, "gate": (*asking).gates, "to": (*asking).revisions,
		"from": (*asking).revisions, "instance": (*asking).instances,
	} {
		flags[flag] = c.flag(names)
	}
	for flag, names := range map[string]func(*cobra.Command) []string{
		"repo": c.repositories, "url-repo": c.repositories, "merge-repo": c.repositories, "context": c.contexts, "to-context": c.contexts,
	} {
		flags[flag] = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return names(cmd), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for flag, words := range wordsOf(cmd) {
		flags[flag] = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, names := range flags {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, names) // fails if it has one of its own
		}
	}
}

// wordAt is the word of a usage that stands for an argument, "" if there is none. The last is
// that of all that follow, if they may be several.
func wordAt(words []string, i int) string {
	if last := len(words) - 1; i > last && last >= 0 && strings.HasSuffix(words[last], "...") {
		i = last
	}
	if i >= len(words) || strings.HasPrefix(words[i], "-") || strings.HasPrefix(words[i], "[-") {
		return ""
	}
	return strings.Trim(words[i], "[].")
}

// argument completes an argument by the word that stands for it in the usage.
func (c completer) argument(cmd *cobra.Command, word string, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch kind, _, _ := strings.Cut(word, "/"); {
	case word == "KIND/NAME":
		return c.object(cmd, typed)
	case strings.HasSuffix(word, "/NAME"):
		return c.ask(cmd, args, func(a *asking) []string { return a.namesOf(kind, kind+"/") })
	case word == "MODULE":
		return c.ask(cmd, args, func(a *asking) []string {
			return append(a.namesOf("module", "module/"), a.namesOf("bootstrapmodule", "bootstrapmodule/")...)
		})
	case word == "CLUSTER":
		return c.ask(cmd, args, func(a *asking) []string {
			return append(a.all(fleetv1.GroupVersion.WithKind("ProxyAssemblage")), a.all(fleetv1.GroupVersion.WithKind("RemoteAssemblage"))...)
		})
	case word == "KUSTOMIZATION":
		kind := kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind)
		if isRelease, _ := cmd.Flags().GetBool("release"); isRelease {
			kind = helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind)
		}
		return c.ask(cmd, args, func(a *asking) []string { return a.all(kind) })
	case word == "INSTANCE":
		return c.ask(cmd, args, (*asking).instances)
	case word == "PLAN":
		return c.ask(cmd, args, (*asking).plans)
	case word == "REPOSITORY":
		return c.repositories(cmd), cobra.ShellCompDirectiveNoFileComp
	case word == "PATH", word == "DIR", word == "PACKAGE":
		return nil, cobra.ShellCompDirectiveDefault
	case strings.Contains(word, "|"):
		return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// object completes KIND/NAME: first the kind, then its names.
func (c completer) object(cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, named := strings.Cut(typed, "/")
	if named {
		return c.ask(cmd, nil, func(a *asking) []string { return a.namesOf(strings.ToLower(kind), kind+"/") })
	}
	kinds := command.RolledKinds
	switch cmd.Name() {
	case "retry":
		kinds = act.RetriedKinds
	case "pause", "resume":
		kinds = act.PausedKinds
	case "approve", "refuse":
		kinds = act.GatedKinds
	case "explain", "watch":
		kinds = slices.Concat(kinds, command.ReleasingKinds)
	case "rollback":
		kinds = lifecycle.ReturnKinds
	case "diff":
		kinds = lifecycle.RevisionKinds
	case "history":
		kinds = append(slices.Clone(kinds), describe.KindConfigMap, describe.KindSecret)
	}
	var words []string
	for _, k := range kinds {
		words = append(words, strings.ToLower(k)+"/")
	}
	return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func wordsOf(cmd *cobra.Command) map[string][]string {
	words := map[string][]string{
		"rings": append(describe.Rings(), manager.RingAssemblage), "dry-run": {"none", "client", "server"},
		"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"},
		"suspend-by":          {string(workload.SuspendByGate), string(workload.SuspendByScheduler), string(workload.SuspendNot)},
		"webhook-cert-source": {string(admission.Generated), string(admission.CertManager), string(admission.Files)},
		"fail-on":             {"error", "warning", "note", "never"},
	}
	for _, flag := range []string{"output", "sort-by"} {
		if f := cmd.Flags().Lookup(flag); f != nil {
			words[flag] = f.Annotations[command.FlagWords]
		}
	}
	return words
}

func (c completer) flag(names func(*asking) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		all, directive := c.ask(cmd, args, names)
		if i := strings.LastIndexByte(typed, ','); i >= 0 { // a list goes on
			for j := range all {
				all[j] = typed[:i+1] + all[j]
			}
		}
		return all, directive
	}
}

// repositories are those of the list of KUDO; no cluster is asked.
func (c completer) repositories(cmd *cobra.Command) []string {
	var home command.KUDOHome
	if f := cmd.Flags().Lookup("home"); f != nil {
		home = command.KUDOHome(f.Value.String())
	}
	list, err := repository.Open(home.Dir(c.lookup))
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Repositories))
	for i, r := range list.Repositories {
		names[i] = r.Name
	}
	return names
}

// contexts are those of the kubeconfig; no cluster is asked.
func (c completer) contexts(cmd *cobra.Command) []string {
	_ = command.FromEnvironment(cmd.Flags(), c.lookup)
	var cluster command.Cluster
	cluster.Take(cmd.Flags())
	raw, err := cluster.Loader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

type asking struct {
	ctx       context.Context
	client    client.Client
	namespace string
	args      []string
}

func (c completer) ask(cmd *cobra.Command, args []string, question func(*asking) []string) ([]string, cobra.ShellCompDirective) {
	_ = command.FromEnvironment(cmd.Flags(), c.lookup)
	var cluster command.Cluster
	cluster.Take(cmd.Flags())
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	connected, namespace, err := cluster.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := question(&asking{ctx, connected, namespace, args})
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// namesOf are the names of a kind, by what a person calls it, each with a prefix.
func (a *asking) namesOf(kind, prefix string) []string {
	ref, err := describe.Named(command.NoOtherKinds, "", kind+"/x")
	if err != nil {
		return nil
	}
	gvk, _ := describe.KindNamed(ref.Kind)
	names := a.all(gvk)
	for j := range names {
		names[j] = prefix + names[j]
	}
	return names
}

func (a *asking) all(kind schema.GroupVersionKind) []string { return a.list(kind, a.namespace) }

func (a *asking) namespaces() []string {
	return a.list(corev1.SchemeGroupVersion.WithKind("Namespace"), "")
}

func (a *asking) instances() []string { return a.namesOf("instance", "") }

func (a *asking) clusters() []string {
	m, module := a.module()
	if module == nil {
		return nil
	}
	return a.list(fleetv1.GroupVersion.WithKind(describe.AssemblageKind(m.Kind)), a.namespace)
}

func (a *asking) stages() []string {
	_, module := a.module()
	if module == nil {
		return nil
	}
	_, status := model.Parts(module)
	var names []string
	for i := range status.Stages {
		names = append(names, status.Stages[i].Name)
	}
	return names
}

func (a *asking) gates() []string {
	m, module := a.module()
	list := &spillwayv1.RolloutGateList{}
	if module == nil || a.client.List(a.ctx, list, client.InNamespace(a.namespace)) != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if ref := list.Items[i].Spec.TargetRef; ref.Kind == m.Kind && ref.Name == m.Name {
			names = append(names, list.Items[i].Spec.Gate)
		}
	}
	return names
}

func (a *asking) list(gvk schema.GroupVersionKind, namespace string) []string {
	list := kube.MetadataList(gvk)
	if err := a.client.List(a.ctx, list, client.InNamespace(namespace), client.Limit(completionsAtMost)); err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// revisions are where a module can go to, or the revisions of a workload or the contents of an
// object that are kept.
func (a *asking) revisions() []string {
	if len(a.args) == 0 {
		return nil
	}
	if ref, ok := command.NamedAs(a.args[0], lifecycle.ReturnKinds...); ok {
		ref.Namespace = a.namespace
		return lifecycle.Returnable(a.ctx, a.client, ref)
	}
	m, module := a.module()
	if module == nil {
		return nil
	}
	revisions, err := act.Revisions(a.ctx, a.client, m, module)
	if err != nil {
		return nil
	}
	names := []string{act.Latest}
	for _, r := range revisions {
		names = append(names, r.Name)
	}
	return names
}

// module is the one that was named before, nil if none was.
func (a *asking) module() (act.Module, client.Object) {
	if len(a.args) == 0 {
		return act.Module{}, nil
	}
	m, err := fleet.Named(a.args[0])
	if err != nil {
		return m, nil
	}
	m.Namespace = a.namespace
	module := model.New(m.Kind)
	if a.client.Get(a.ctx, m.Key(), module) != nil {
		return m, nil
	}
	return m, module
}

func (a *asking) plans() []string {
	if len(a.args) == 0 {
		return nil
	}
	i, version := &v1beta1.Instance{}, &v1beta1.OperatorVersion{}
	if a.client.Get(a.ctx, client.ObjectKey{Namespace: a.namespace, Name: command.InstanceName(a.args[0])}, i) != nil {
		return nil
	}
	if a.client.Get(a.ctx, choice.VersionKey(i.Namespace, &i.Spec), version) != nil {
		return nil
	}
	return slices.Collect(maps.Keys(version.Spec.Plans))
}

// completesPlugin is what kubectl runs to complete what is typed after
// "kubectl spillway", if it finds it by its name in the PATH.
const completesPlugin = `#!/bin/sh
# Save this as kubectl_complete-spillway in a folder of your PATH, and make it
# executable. kubectl runs it to complete what is typed after "kubectl spillway".
exec kubectl-spillway __complete "$@"
`

// shells are the shells that are completed for, and where each looks for scripts.
var shells = []struct {
	name, example string
	script        func(*cobra.Command) error
}{
	{"bash", "  spillway completion bash > ~/.local/share/bash-completion/completions/spillway", func(cmd *cobra.Command) error {
		return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true)
	}},
	{"zsh", "  spillway completion zsh > \"${fpath[1]}/_spillway\"", func(cmd *cobra.Command) error {
		return cmd.Root().GenZshCompletion(cmd.OutOrStdout())
	}},
	{"fish", "  spillway completion fish > ~/.config/fish/completions/spillway.fish", func(cmd *cobra.Command) error {
		return cmd.Root().GenFishCompletion(cmd.OutOrStdout(), true)
	}},
	{"powershell", "  spillway completion powershell | Out-String | Invoke-Expression", func(cmd *cobra.Command) error {
		return cmd.Root().GenPowerShellCompletionWithDesc(cmd.OutOrStdout())
	}},
	{"kubectl", "  spillway completion kubectl > ~/bin/kubectl_complete-spillway\n  chmod +x ~/bin/kubectl_complete-spillway", func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), completesPlugin)
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	}},
}

func addCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableDefaultCmd = true
	completion := &cobra.Command{
		Use: "completion", Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. It completes commands and flags, and names from
the cluster: objects, namespaces, stages, clusters and plans.`,
	}
	for _, shell := range shells {
		who := "Print the completion script for " + shell.name
		if shell.name == "kubectl" {
			who = `Print the completion script for kubectl, which completes "kubectl spillway"`
		}
		completion.AddCommand(&cobra.Command{
			Use: shell.name, Short: who, Long: who + ". Save it where the\nexample does, and start a new shell.",
			Example: shell.example, Args: command.None("leave them out"), ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(cmd *cobra.Command, _ []string) error { return shell.script(cmd) },
		})
	}
	root.AddCommand(completion)
}
