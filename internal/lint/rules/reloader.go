package rules

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// reloaderKey is an annotation of Reloader, which rolls workloads upon changes of their
// config as well.
type reloaderKey struct {
	name string
	// rolls is true of those that make Reloader roll a workload.
	rolls bool
	// instead says what does the same here.
	instead string
}

func reloaderRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW111", Level: report.Warning, Title: "A workload that both Spillway and Reloader roll",
			Why:    "A change of config rolls it twice, once by each, and Reloader knows no order, budget or pause.",
			Action: "Remove the annotations of Reloader.",
		}, rolledTwice},
		{report.Rule{
			Code: "SPW112", Level: report.Note, Title: "An annotation of Reloader, which Spillway does not read",
			Why:    "It has an effect where Reloader runs. Spillway has another annotation for the same.",
			Action: "Keep it where Reloader runs; with Spillway, use its own annotation.",
		}, reloaderAlone},
	}
}

func rolledTwice(m *manifest.Manifests, r *reporter) {
	policies := setIn(m)
	reloaderUses(m, func(o *manifest.Object, u *manifest.KeyUse, key *reloaderKey) {
		if rollsTwice(policies, o, u, key) {
			r.findf(o, u.Path, "%s makes Reloader roll it as well", u.Name)
			r.actionf("Remove it: %s.", key.instead)
		}
	})
}

func reloaderAlone(m *manifest.Manifests, r *reporter) {
	policies := setIn(m)
	reloaderUses(m, func(o *manifest.Object, u *manifest.KeyUse, key *reloaderKey) {
		if !rollsTwice(policies, o, u, key) {
			r.findf(o, u.Path, "%s is read by Reloader, and not by Spillway", u.Name)
			r.actionf("Keep it where Reloader runs. With Spillway, %s.", key.instead)
		}
	})
}

// reloaderUses visits the annotations of Reloader on workloads that Spillway could
// follow, and on config.
func reloaderUses(m *manifest.Manifests, visit func(o *manifest.Object, u *manifest.KeyUse, key *reloaderKey)) {
	keys := reloaderKeys()
	for _, o := range m.Objects {
		if !o.CanTrack() && !o.IsConfig() {
			continue
		}
		for _, u := range o.Keys() {
			i := slices.IndexFunc(keys, func(k reloaderKey) bool { return k.name == u.Name && u.At != vocabulary.Label })
			if i >= 0 {
				visit(o, &u, &keys[i])
			}
		}
	}
}

// reloaderKeys are its annotations. They are no part of the vocabulary, which has what
// Spillway reads: none of them is an alias of one of its keys, because what they mean
// differs in part, and because Reloader may still run and read them.
func reloaderKeys() []reloaderKey {
	follow := vocabulary.ConfigTracked.Native + `: "true" follows all config that its Pods use`
	listed := follow + "; what its program reads through the API is named by "
	return []reloaderKey{
		{"reloader.stakater.com/auto", true, follow},
		{"configmap.reloader.stakater.com/auto", true, follow + ", Secrets as well"},
		{"secret.reloader.stakater.com/auto", true, follow + ", ConfigMaps as well"},
		{"reloader.stakater.com/search", true, follow + ", whether that is marked or not; " + vocabulary.Ignored.Native + ` on config leaves it out`},
		{"configmap.reloader.stakater.com/reload", true, listed + vocabulary.ExtraConfigMaps.Native},
		{"secret.reloader.stakater.com/reload", true, listed + vocabulary.ExtraSecrets.Native},
		{"configmaps.exclude.reloader.stakater.com/reload", false, vocabulary.IgnoredConfigMaps.Native + " leaves ConfigMaps out"},
		{"secrets.exclude.reloader.stakater.com/reload", false, vocabulary.IgnoredSecrets.Native + " leaves Secrets out"},
		{"deployment.reloader.stakater.com/pause-period", false, vocabulary.CoalesceWindow.Native + " makes one roll of changes that follow one another"},
		{"reloader.stakater.com/match", false, "what a workload that is followed uses needs no mark; " + vocabulary.Ignored.Native + " leaves it out"},
		{"reloader.stakater.com/ignore", false, vocabulary.Ignored.Native + `: "true" keeps its changes from rolling anything`},
		{"reloader.stakater.com/rollout-strategy", false, "nothing is needed: the workload rolls as its own strategy says"},
	}
}

// rollsTwice is true of an annotation by which Reloader rolls what Spillway follows.
func rollsTwice(policies policy.Set, o *manifest.Object, u *manifest.KeyUse, key *reloaderKey) bool {
	return key.rolls && strings.TrimSpace(u.Value) != "" && u.Value != "false" && o.CanTrack() && readBy(policies, o).Tracked
}
