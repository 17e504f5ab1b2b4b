package rules

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

func scalingRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW301", Level: report.Error, Title: "A setting about scaling is invalid",
			Why:    "The StatefulSet keeps its replicas until it is fixed.",
			Action: "Correct the value, or remove it.",
		}, scalingSettings},
		{report.Rule{
			Code: "SPW302", Level: report.Error, Title: "Pods are to be prepared for a downscale, and no endpoint is set",
			Why:    "Every downscale of the StatefulSet is refused.",
			Action: "Set " + vocabulary.PrepareDownscalePort.Native + ", " + vocabulary.PrepareDownscalePath.Native + " and spec.serviceName, or remove the label " + vocabulary.PrepareDownscale.Native + ".",
		}, unprepared},
		{report.Rule{
			Code: "SPW303", Level: report.Error, Title: "A leader that cannot be followed",
			Why:    "A follower whose leader is not in its group, or follows it in turn, keeps its replicas.",
			Action: "Name a StatefulSet of the same group that does not follow this one.",
		}, badLeader},
		{report.Rule{
			Code: "SPW304", Level: report.Warning, Title: "A setting about scaling without the setting that it belongs to",
			Why:    "Half of a pair has no effect.",
			Action: "Add the other half, or remove this one.",
		}, halves},
		{report.Rule{
			Code: "SPW310", Level: report.Warning, Title: "Two writers of the replicas of one StatefulSet",
			Why:    "Each reverts what the other writes.",
			Action: "Keep one of them; to let an autoscaler scale a group, let it scale the leader.",
		}, twoScalers},
		{report.Rule{
			Code: "SPW311", Level: report.Warning, Title: "A follower that must never be scaled down",
			Why:    "It is scaled up with its leader, and every downscale is refused.",
			Action: "Remove the label " + vocabulary.NoDownscale.Native + ", or the leader.",
		}, oneWay},
		{report.Rule{
			Code: "SPW312", Level: report.Note, Title: "A leader that is not among the manifests",
			Why:    "It may exist in the cluster already. Until it exists in the same group, the follower keeps its replicas.",
			Action: "Add it, or fix its name.",
		}, absentLeader},
		{report.Rule{
			Code: "SPW313", Level: report.Warning, Title: "Something that is proposed for rollout-operator",
			Why:    "Spillway does not read it, and rolls as if it did not exist.",
			Action: "Use what the finding names instead.",
		}, proposed},
		{report.Rule{
			Code: "SPW314", Level: report.Note, Title: "A follower with replicas in its manifest",
			Why:    "Its replicas are those of its leader. A client that applies the manifest again and again sets them back, and each time Pods are added or removed; Spillway then keeps the replicas as they are, and says so.",
			Action: "Remove spec.replicas from the manifest of the follower, or have the client ignore the field.",
		}, fixedFollower},
	}
}

func scalingSettings(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		for _, p := range scaling.SettingsOf(set.Labels, set.Annotations).Problems {
			r.findf(o, o.RingField("annotation "+p.Field), "%s: invalid value %q: %s", p.Field, p.Value, p.Action)
		}
	})
}

func unprepared(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if vocabulary.PrepareDownscale.Get(set.Labels) != "true" {
			return
		}
		if _, missing := preparehook.EndpointOf(set); missing != "" {
			r.findf(o, o.Keyed(vocabulary.PrepareDownscale), "its Pods are to be prepared before they are removed, but %s", strings.TrimSuffix(missing, "."))
		}
	})
}

func badLeader(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		for _, o := range g.objects {
			if problem := scaling.LeaderProblem(o.Name(), g.sets); problem != "" && m.Leader(o) != nil {
				r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "%s", problem)
			}
		}
	}
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if vocabulary.GroupOf(set.Labels, set.Annotations) == "" && vocabulary.DownscaleLeader.Get(set.Annotations) != "" {
			r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "a leader is set, and no group")
		}
	})
}

func absentLeader(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if name := vocabulary.DownscaleLeader.Get(set.Annotations); name != "" && m.Leader(o) == nil {
			r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "its leader %s is not among the manifests", name)
		}
	})
}

// half is a key that has no effect without any of the others.
type half struct {
	key   vocabulary.Key
	needs []vocabulary.Key
}

func halves(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		for _, pair := range pairs() {
			_, name, ok := pair.key.Lookup(set.Annotations)
			if !ok || slices.ContainsFunc(pair.needs, func(k vocabulary.Key) bool { return k.Get(set.Annotations)+k.Get(set.Labels) != "" }) {
				continue
			}
			r.findf(o, manifest.Annotation(name), "%s has no effect without %s", name, nativeNames(pair.needs))
		}
	})
}

func pairs() []half {
	return []half{
		{vocabulary.UpscaleOnlyWhenLeaderReady, []vocabulary.Key{vocabulary.DownscaleLeader}},
		{vocabulary.ForceReplicas, []vocabulary.Key{vocabulary.DownscaleLeader, vocabulary.MirrorName}},
		{vocabulary.MirrorName, []vocabulary.Key{vocabulary.MirrorKind}},
		{vocabulary.MirrorKind, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.MirrorAPIVersion, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.MirrorWriteBack, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.DelayedDownscale, []vocabulary.Key{vocabulary.DelayedDownscaleURL}},
		{vocabulary.DelayedDownscaleURL, []vocabulary.Key{vocabulary.DelayedDownscale}},
		{vocabulary.PrepareDownscalePort, []vocabulary.Key{vocabulary.PrepareDownscale}},
		{vocabulary.PrepareDownscalePath, []vocabulary.Key{vocabulary.PrepareDownscale}},
		{vocabulary.PrepareDownscaleScheme, []vocabulary.Key{vocabulary.PrepareDownscale}},
	}
}

func nativeNames(keys []vocabulary.Key) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Native)
	}
	return strings.Join(names, " or ")
}

func twoScalers(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		leads, _, follows := vocabulary.DownscaleLeader.Lookup(set.Annotations)
		mirrored, name, mirrors := vocabulary.MirrorName.Lookup(set.Annotations)
		if follows && mirrors && leads != "" && mirrored != "" {
			r.findf(o, manifest.Annotation(name), "replicas follow %s, and so do not mirror %s", leads, mirrored)
		}
	})
	for i := range m.Scalers {
		s := &m.Scalers[i]
		_, set := manifest.Find[*appsv1.StatefulSet](m, s.Namespace(), s.Name)
		if s.Kind != "StatefulSet" || set == nil {
			continue
		}
		if wanted := scaling.SettingsOf(set.Labels, set.Annotations); wanted.Leader != "" || wanted.Mirror != nil {
			r.findf(s.Object, manifest.Fields("spec.scaleTargetRef"), "the replicas of StatefulSet %s are written by Spillway already", set.Name)
		}
	}
}

func proposed(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			if instead := vocabulary.Unsupported(o.Kind(), u.Name); instead != "" {
				r.findf(o, u.Path, "%s has no effect", u.Name)
				r.actionf("Remove it; instead, %s.", instead)
			}
		}
		if o.Kind() == vocabulary.UnsupportedKind {
			r.findf(o, manifest.Fields("kind"), "Spillway does not evaluate it")
			r.actionf("%s.", strings.ToUpper(vocabulary.InsteadOfKind[:1])+vocabulary.InsteadOfKind[1:])
		}
	}
}

func fixedFollower(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if leader := vocabulary.DownscaleLeader.Get(set.Annotations); leader != "" && set.Spec.Replicas != nil {
			r.findf(o, manifest.Fields("spec.replicas"), "its replicas are those of its leader %s, and not %d", leader, *set.Spec.Replicas)
		}
	})
}

func oneWay(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		s := scaling.SettingsOf(set.Labels, set.Annotations)
		if vocabulary.NoDownscale.Get(set.Labels) == "true" && (s.Leader != "" || s.Mirror != nil) {
			r.findf(o, o.Keyed(vocabulary.NoDownscale), "replicas are written by Spillway, and every downscale is refused")
		}
	})
}
