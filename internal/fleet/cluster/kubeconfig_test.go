package cluster

import (
	"errors"
	"strings"
	"testing"
)

const kubeconfigHead = `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
`

func TestKubeconfigsThatAreRefused(t *testing.T) {
	const server = "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]\n"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":         {"", `the Secret has no key "value"`},
		"no kubeconfig":   {"hello: [", "not a kubeconfig"},
		"no such cluster": {kubeconfigHead + "users: [{name: u, user: {token: t}}]", "its current context is incomplete"},
		"runs a program":  {kubeconfigHead + server + "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}}}]", `user "u" runs a program; use a token or a certificate`},
		"auth provider":   {kubeconfigHead + server + "users: [{name: u, user: {auth-provider: {name: gcp}}}]", `user "u" runs a program`},
		"reads a token":   {kubeconfigHead + server + "users: [{name: u, user: {tokenFile: /var/run/secrets/token}}]", `user "u" refers to files`},
		"reads a key":     {kubeconfigHead + server + "users: [{name: u, user: {client-key: /etc/key}}]", `user "u" refers to files`},
		"reads a CA": {
			kubeconfigHead + "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1', certificate-authority: /etc/passwd}}]\nusers: [{name: u, user: {token: t}}]",
			`cluster "k" refers to a file`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := configOf([]byte(test.text), nil)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A kubeconfig is a secret; what is said about it is not.
func TestErrorsQuoteNothingOfAKubeconfig(t *testing.T) {
	for _, text := range []string{"s3cret", "users: s3cret", kubeconfigHead + "users: [{name: u, user: {token: s3cret, exec: {command: s3cret}}}]"} {
		if _, err := configOf([]byte(text), nil); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
}

func TestNames(t *testing.T) {
	if got := NameOf(SecretName("c1")); got != "c1" {
		t.Error(got)
	}
	if got := NameOf("else"); got != "else" {
		t.Error(got)
	}
}
