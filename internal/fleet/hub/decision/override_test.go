package decision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

const (
	euTwo = `{name: eu, clusters: {matchLabels: {region: eu}}, controlPlaneBindings: [{name: A, value: "2"}]}`
	euOne = `{name: eu, clusters: {matchLabels: {region: eu}}, controlPlaneBindings: [{name: A, value: "1"}]}`
)

// varied is a module as [planned] has it, of which v1 and v2 are the same tag with these overrides. A cluster has
// the overrides that its label "has" names.
func varied(t *testing.T, spec, v1, v2, clusters string) model.Observed {
	t.Helper()
	o := planned(t, spec, clusters)
	names := map[string]string{}
	o.Revisions = nil
	for i, overrides := range []string{v1, v2} {
		template := templateOf("v1")
		if err := yaml.UnmarshalStrict([]byte("["+overrides+"]"), &template.Overrides); err != nil {
			t.Fatal(err)
		}
		was := revisionOf(fmt.Sprintf("v%d", i+1))
		names[was] = model.RevisionName(model.KindModule, app, template)
		variants := model.VariantsOf(&template)
		o.Revisions = append(o.Revisions, model.Revision{Name: names[was], Number: int64(i + 1), Variants: variants, Written: variants})
		o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: template}
	}
	o.Module.Status.CurrentRevision = names[o.Module.Status.CurrentRevision]
	for i := range o.Records {
		r := &o.Records[i]
		r.Revision, r.Succeeded = names[r.Revision], names[r.Succeeded]
		if j := slices.IndexFunc(o.Clusters, func(c model.Cluster) bool { return c.Name == r.Cluster }); j >= 0 && o.Clusters[j].Labels["has"] != "" {
			r.Overrides = []string{o.Clusters[j].Labels["has"]}
		}
	}
	return o
}

// saidOf are the steps and holds, with v1 and v2 for the revisions.
func saidOf(o *model.Observed, p *decision.Plan) string {
	return strings.NewReplacer(o.Revisions[0].Name, "v1", o.Revisions[1].Name, "v2").Replace(said(p))
}

func TestOverrides(t *testing.T) {
	const incremental, staged = `strategy: Incremental`, `strategy: Incremental, rollout: {stages: [{name: us, selector: {matchLabels: {region: us}}}, {name: eu}]}`
	for name, test := range map[string]struct{ spec, v1, v2, clusters, want string }{
		"only what it changes moves": {
			incremental, "", euTwo, "a v1 up region=us\nb v1 up region=eu", "b is updating from v1 to v2",
		},
		"a stage that it does not change needs no evidence": {
			staged, "", euTwo, "a v1 up region=us\nb v1 up region=eu", "b is updating from v1 to v2",
		},
		"a stage of which a part is changed does": {
			staged, euOne, euTwo + `, {name: big, clusters: {matchLabels: {size: big}}, controlPlaneBindings: [{name: B, value: x}]}`,
			"a v1 up region=us\nb v1 unreachable region=us size=big\nc v1 up region=eu has=eu",
			"us is waiting: 0 of 1 show that the target is good, a is not changed by v2 and 1 more give no evidence\n" +
				"b is waiting: skipped until it answers: not reachable: cluster b does not answer since 4 May 11:00:00 UTC\n" +
				"eu is waiting: us is waiting: 0 of 1 show that the target is good, a is not changed by v2 and 1 more give no evidence",
		},
		"what fails and is not changed fails no revision, and takes no place": {
			incremental, "", euTwo, "a v1 failed region=us\nb v1 up region=eu", "b is updating from v1 to v2\na is up to date but not healthy",
		},
		"other labels are an update in the budget": {
			incremental, "", euTwo, "a v2 up region=us has=eu\nb v2 up region=eu\nc v1 up",
			"a is updating from v2 with override eu instead of no override to v2\nb is queued (position 1): 1 of 1 allowed unavailable in all",
		},
		"labels that change nothing are none": {
			incremental, euOne, euTwo, "a v2 up region=eu has=eu\nb v1 up region=us", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := varied(t, test.spec, test.v1, test.v2, test.clusters)
			p := decision.Decide(o)
			if got := saidOf(&o, &p); got != test.want {
				t.Errorf("it says\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What another revision has brought that did not reach all clusters is evidence of the target, too: it fails what
// comes after it and changes nothing there.
func TestAFailureOutlivesTheRevisionThatBroughtIt(t *testing.T) {
	big := euTwo + `, {name: big, clusters: {matchLabels: {size: big}}, controlPlaneBindings: [{name: B, value: x}]}`
	o := varied(t, "strategy: Incremental", euTwo, big, "a v1 failed region=eu has=eu\nb v1 up region=us size=big")
	plain := templateOf("v1")
	o.Revisions = append(o.Revisions, model.Revision{Name: "app-before", Variants: model.VariantsOf(&plain), Written: model.VariantsOf(&plain)})
	o.Module.Status.CurrentRevision = "app-before"
	p := decision.Decide(o)
	if got := saidOf(&o, &p); got != "a failed: not healthy\nall failed: 1 of 2 units failed, 0 allowed; a failed: not healthy" {
		t.Error(got)
	}
}

// A tag that is looked up already is not looked up again for the clusters that an override changes.
func TestAnOverrideKeepsTheCommitOfItsTag(t *testing.T) {
	o := varied(t, "strategy: Incremental", "", euTwo, "a v1 up region=us\nb v1 up region=eu")
	o.Revisions[0].Resolved = "v1@sha1:" + strings.Repeat("0a", 20)
	p := decision.Decide(o)
	if len(p.Writes) != 1 || p.Writes[0].Act != decision.Resolve || p.Writes[0].Revision != o.Revisions[1].Name || p.Writes[0].Resolved != o.Revisions[0].Resolved {
		t.Errorf("%+v", p.Writes)
	}
}

// Whatever the labels and whatever clusters have: what moves is what differs, never more than the budget allows, and
// what is the same is never written.
func TestPropertyOverridesMoveWhatDiffers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(r, label) }
		var lines []string
		for i := range rapid.IntRange(1, 8).Draw(r, "clusters") {
			line := fmt.Sprintf("c%d %s %s region=%s", i, draw("tag", "v1", "v2"), draw("state", "up", "up", "failed", "updating"), draw("region", "eu", "us"))
			if draw("has", "", "eu") == "eu" {
				line += " has=eu"
			}
			lines = append(lines, line)
		}
		o := varied(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2, onFailure: Continue}`, draw("v1", "", euOne, euTwo), euTwo, strings.Join(lines, "\n"))
		if o.Revisions[0].Name == o.Revisions[1].Name {
			r.Skip("there is one revision")
		}
		p := decision.Decide(o)
		taken := 0
		for _, s := range p.Steps {
			name := s.Path[len(s.Path)-1]
			i := slices.IndexFunc(o.Records, func(r model.Record) bool { return r.Cluster == name })
			if differs := contentOf(&o, i) != wantedOf(&o, i); !differs {
				r.Errorf("%s moves though nothing changes on it: %s", name, lines[i])
			}
			taken += one(!s.Repair)
		}
		if taken > 2 {
			r.Errorf("%d clusters are taken down", taken)
		}
		for i := range o.Records {
			if contentOf(&o, i) != wantedOf(&o, i) && !strings.Contains(said(&p), o.Records[i].Cluster+" is") {
				r.Errorf("nothing is said of %s: %s", lines[i], said(&p))
			}
		}
	})
}

// contentOf is what a cluster runs, and wantedOf what it should: the value of A, as the overrides above say.
func contentOf(o *model.Observed, i int) string {
	return valueOf(o, o.Records[i].Revision, len(o.Records[i].Overrides) > 0)
}

func wantedOf(o *model.Observed, i int) string {
	return valueOf(o, o.Revisions[1].Name, o.Clusters[i].Labels["region"] == "eu")
}

func valueOf(o *model.Observed, revision string, isEU bool) string {
	v := o.Revision(revision).Variants
	if !isEU || !v.Varies() {
		return ""
	}
	return *v.With([]string{"eu"}).ControlPlaneBindings[0].Value
}
