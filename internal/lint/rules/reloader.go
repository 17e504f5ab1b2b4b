package rules

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func reloaderRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW111", Level: report.Warning, Title: "A workload that both Spillway and Reloader roll",
			Why:    "A change of config rolls it twice, once by each, and Reloader knows no order, budget or pause.",
			Action: "Remove the annotations of Reloader.",
		}, rolledTwice},
		{report.Rule{
			Code: "SPW112", Level: report.Note, Title: "An annotation of Reloader, which Spillway reads only with a flag",
			Why:    "It has an effect where Reloader runs, or where Spillway is installed with --reloader-annotations; lint has the same flag. Spillway has another annotation for the same.",
			Action: "Keep it, and install Spillway with --reloader-annotations; or use the annotation of Spillway.",
		}, reloaderAlone},
		{report.Rule{
			Code: "SPW122", Level: report.Warning, Title: "A mistake in an annotation of Reloader",
			Why:    "It has no effect, or another one than it seems to have, with Reloader as with Spillway.",
			Action: "Correct or remove it.",
		}, reloaderMistakes},
		{report.Rule{
			Code: "SPW123", Level: report.Note, Title: "A workload with annotations of Reloader that Spillway does not roll",
			Why:    "Spillway rolls Deployments, StatefulSets and DaemonSets. With --reloader-annotations a change restarts the Pods of a Rollout of Argo, without stages, stop and return. The next run of a CronJob has the new config, or a change starts one where the manager runs with --reloader-cronjobs. A Job that runs is not started again, because the work that it has done would be lost.",
			Action: "Remove them from Jobs, from CronJobs without --reloader-cronjobs, and from Rollouts of which each change needs its steps.",
		}, reloaderElsewhere},
	}
}

func rolledTwice(m *manifest.Manifests, r *reporter) {
	policies := setIn(m)
	reloaderUses(m, func(o *manifest.Object, u *manifest.KeyUse, key *vocabulary.FormerKey) {
		switch {
		case !rollsTwice(policies, o, u, key):
		case m.Reloader != nil:
			r.findf(o, u.Path, "%s has no effect: the annotation of Spillway or a policy decides", u.Name)
			r.actionf("Remove it, or the other one.")
		default:
			r.findf(o, u.Path, "%s makes Reloader roll it as well", u.Name)
			r.actionf("Remove it: %s.", key.Instead)
		}
	})
}

func reloaderAlone(m *manifest.Manifests, r *reporter) {
	if m.Reloader != nil {
		return
	}
	policies := setIn(m)
	reloaderUses(m, func(o *manifest.Object, u *manifest.KeyUse, key *vocabulary.FormerKey) {
		if !rollsTwice(policies, o, u, key) {
			r.findf(o, u.Path, "%s is read by Reloader, and by Spillway only with --reloader-annotations", u.Name)
			r.actionf("Install Spillway with the flag, and lint with it. Without it, %s.", key.Instead)
		}
	})
}

// reloaderUses visits the annotations of Reloader on workloads that Spillway could
// follow, and on config.
func reloaderUses(m *manifest.Manifests, visit func(o *manifest.Object, u *manifest.KeyUse, key *vocabulary.FormerKey)) {
	keys := vocabulary.ReloaderKeys()
	for _, o := range m.Objects {
		if !o.CanTrack() && !o.IsConfig() {
			continue
		}
		for _, u := range o.Keys() {
			i := slices.IndexFunc(keys, func(k vocabulary.FormerKey) bool { return k.Name == u.Name && u.At != vocabulary.Label })
			if i >= 0 {
				visit(o, &u, &keys[i])
			}
		}
	}
}

// rollsTwice is true of an annotation by which Reloader rolls what Spillway follows.
func rollsTwice(policies policy.Set, o *manifest.Object, u *manifest.KeyUse, key *vocabulary.FormerKey) bool {
	return key.Rolls && strings.TrimSpace(u.Value) != "" && u.Value != "false" && o.CanTrack() && readNatively(policies, o).Tracked
}

// reloaderMistakes finds what the manager reports on the workload.
func reloaderMistakes(m *manifest.Manifests, r *reporter) {
	reads := m.Reloader
	if reads == nil {
		reads = &reloader.Options{}
	}
	for _, o := range m.Objects {
		if !o.CanTrack() {
			continue
		}
		for _, p := range workload.ReloaderProblems(o.Typed, reads) {
			r.findf(o, pathOf(o, p.Annotation), "%s", p)
		}
	}
}

// pathOf is where an annotation stands that is among those of a workload or of its Pod template.
func pathOf(o *manifest.Object, annotation string) []string {
	for _, u := range o.Keys() {
		if u.Name == annotation && u.At != vocabulary.Label {
			return u.Path
		}
	}
	return manifest.Annotation(annotation)
}

// reloaderElsewhere finds annotations by which Reloader rolls kinds that Spillway does not roll.
func reloaderElsewhere(m *manifest.Manifests, r *reporter) {
	kinds := vocabulary.ReloaderKinds()
	for _, o := range m.Objects {
		i := slices.IndexFunc(kinds, func(k vocabulary.ReloaderKind) bool { return k.Next != "" && o.Is(k.Group, k.Kind) })
		if i < 0 {
			continue
		}
		for _, name := range vocabulary.ReloaderRolling(o.Object.GetAnnotations()) {
			r.findf(o, manifest.Annotation(name), "%s rolls no %s with Spillway: %s", name, o.Kind(), kinds[i].Next)
		}
	}
}
