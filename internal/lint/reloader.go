package lint

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/workload"
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

// reloaderKeys are its annotations. They are no part of the vocabulary, which has what
// Spillway reads: none of them is an alias of one of its keys, because what they mean
// differs in part, and because Reloader may still be there and read them.
func reloaderKeys() []reloaderKey {
	follow := vocabulary.ConfigTracked.Native + `: "true" follows all config that its Pods use`
	listed := follow + "; what its program reads by itself is named by "
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

func reloaderRules() []Rule {
	return []Rule{
		{
			Code: "SPW111", Level: Warning, Title: "A workload that both Spillway and Reloader roll",
			Why:    "A change of config rolls it twice, once by each, and Reloader keeps to no order, budget or pause.",
			Action: "Take the annotations of Reloader out.", check: rolledTwice,
		},
		{
			Code: "SPW112", Level: Note, Title: "An annotation of Reloader, which Spillway does not read",
			Why:    "It is right where Reloader runs. Where Spillway takes its place, another annotation does the same.",
			Action: "Keep it where Reloader runs; with Spillway, use its own annotation.", check: reloaderAlone,
		},
	}
}

// reloaderUses visits the annotations of Reloader on workloads that Spillway could
// follow, and on config.
func reloaderUses(m *Manifests, visit func(o *Object, u *use, key *reloaderKey)) {
	keys := reloaderKeys()
	for _, o := range m.Objects {
		if !o.canTrack() && !o.isConfig() {
			continue
		}
		for _, u := range o.keys() {
			i := slices.IndexFunc(keys, func(k reloaderKey) bool { return k.name == u.name && u.place != vocabulary.Label })
			if i >= 0 {
				visit(o, &u, &keys[i])
			}
		}
	}
}

// rollsTwice is true of an annotation by which Reloader rolls what Spillway follows.
func rollsTwice(o *Object, u *use, key *reloaderKey) bool {
	return key.rolls && strings.TrimSpace(u.value) != "" && u.value != "false" && o.canTrack() && workload.ManifestOf(o.Typed).Tracked
}

func rolledTwice(m *Manifests, r *reporter) {
	reloaderUses(m, func(o *Object, u *use, key *reloaderKey) {
		if rollsTwice(o, u, key) {
			r.findf(o, u.path, "%s lets Reloader roll it as well", u.name)
			r.mendf("Take it out: %s.", key.instead)
		}
	})
}

func reloaderAlone(m *Manifests, r *reporter) {
	reloaderUses(m, func(o *Object, u *use, key *reloaderKey) {
		if !rollsTwice(o, u, key) {
			r.findf(o, u.path, "%s is read by Reloader, and not by Spillway", u.name)
			r.mendf("Keep it where Reloader runs. With Spillway, %s.", key.instead)
		}
	})
}
