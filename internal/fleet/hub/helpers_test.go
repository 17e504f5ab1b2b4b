package hub_test

import (
	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// templateOf is what runs the version of a tag.
func templateOf(tag string) v1alpha1.TemplateSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}
	return v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}
}

func revisionOf(tag string) string {
	return model.RevisionName(model.KindModule, app, templateOf(tag))
}
