package kudo_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/cli/kudo"
)

// A message names KUDO's command where there is one, with its arguments; the others stay.
func TestMessagesSpeakKUDOsCommands(t *testing.T) {
	t.Parallel()
	for mine, want := range map[string]string{
		"see all with: spillway package repo list":                                      "see all with: kubectl kudo repo list",
		"see them with: spillway package search -a --repo team":                         "see them with: kubectl kudo search -a --repo team",
		"list them with: spillway package list parameters ./web":                        "list them with: kubectl kudo package list parameters ./web",
		"upgrade it with: spillway package upgrade instance/web-1 PACKAGE -n shop":      "upgrade it with: kubectl kudo upgrade PACKAGE --instance=web-1 -n shop",
		"change it: spillway package update instance/web -p NAME=VALUE -n shop; or not": "change it: kubectl kudo update --instance=web -p NAME=VALUE -n shop; or not",
		"spillway package install 'my web.tgz' web --skip-instance -n shop":             "kubectl kudo install 'my web.tgz' --instance=web --skip-instance -n shop",
		"spillway package uninstall instance/web -n shop":                               "kubectl kudo uninstall --instance=web -n shop",
		"spillway package diagnostics web":                                              "kubectl kudo diagnostics collect --instance=web",
		"spillway plan status web -n shop --request-timeout=5s":                         "kubectl kudo plan status --instance=web -n shop --request-timeout=5",
		"spillway plan trigger web deploy -n shop":                                      "kubectl kudo plan trigger --instance=web --name=deploy -n shop",
		`install it with "spillway install", or with what it belongs to`:                `install it with "kubectl kudo init", or with what it belongs to`,
		"spillway install installs it; spillway check says more":                        "kubectl kudo init installs it; kubectl kudo init --verify says more",
		"spillway install --rings=fleet":                                                "spillway install --rings=fleet",
		"spillway check --pre":                                                          "spillway check --pre",
		"abandon it with: spillway plan abandon web, or see spillway package diff":      "abandon it with: spillway plan abandon web, or see spillway package diff",
		"spillway package --help":                                                       "spillway package --help",
		"spillway.dev/shared-with":                                                      "spillway.dev/shared-with",
	} {
		if got := kudo.Words(mine); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", mine, got, want)
		}
	}
}
