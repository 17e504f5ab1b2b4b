package kudo_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

// The commands of KUDO 0.19 with their flags and examples of their values. X is an argument.
const (
	kudoGlobal   = "--home=h --kubeconfig=k --namespace=n -n=n --request-timeout=5 -v=2 --v=2 --validate-install --help -h"
	kudoCommands = `
init: --client-only -c --kudo-image=i -i=i --kudo-image-pull-policy=Always --version=1 --output=yaml -o=yaml --dry-run --upgrade --verify --crd-only --wait -w --wait-timeout=9 --service-account=s --unsafe-self-signed-webhook-ca
install X: --instance=i --parameter=A -p=A --parameter-file=f -P=f --repo=r --app-version=1 --operator-version=1 --skip-instance --wait --wait-time=9 --create-namespace --in-cluster
update: --instance=i --parameter=A -p=A --parameter-file=f -P=f --wait --wait-time=9
upgrade X: --instance=i --parameter=A -p=A --parameter-file=f -P=f --repo=r --app-version=1 --operator-version=1
uninstall: --instance=i --wait --wait-time=9
get X: --output=json -o=yaml
plan history: --instance=i
plan history X: --instance=i
plan status: --instance=i --wait --output=yaml -o=json
plan trigger: --instance=i --name=p --wait --wait-time=9
plan trigger X: --instance=i
diagnostics collect: --instance=i --log-since=10m --output-directory=d -O=d
package add maintainer: --interactive -i
package add parameter: --interactive -i
package add plan: --interactive -i
package add task: --interactive -i
package create X: --destination=d -d=d --overwrite -w --output=json -o=yaml
package list parameters X: --descriptions -d --required -r --names --repo=r --app-version=1 --operator-version=1
package list plans X: --with-tasks -t --repo=r --app-version=1 --operator-version=1
package list tasks X: --repo=r --app-version=1 --operator-version=1
package new X: --interactive -i --overwrite -w
package verify X: --output=yaml -o=json --param-checks=all --param-checks=display,hint,desc,type,hasgroup,groups
repo add X X: --skip-check -f
repo context X:
repo index X: --url=u --url-repo=r --merge=u --merge-repo=r --overwrite -w
repo list:
repo remove X:
search X: --repo=r --all-versions -a
version: --output=yaml -o=json`
)

// Each command accepts all of its flags, in both forms in which scripts write values. The command
// test, which runs kuttl, has those of kuttl.
func TestEveryCommandAndFlagOfKUDOIsThere(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(strings.TrimSpace(kudoCommands)) {
		words, flags, _ := strings.Cut(strings.TrimSpace(line), ":")
		want := "kubectl kudo " + strings.ReplaceAll(words, " X", "")
		for _, form := range []string{"=", " "} {
			args := strings.Fields(words + " " + strings.ReplaceAll(flags+" "+kudoGlobal, "=", form))
			if code, out := run(t, args...); code != 0 || !strings.Contains(out, "Usage:\n  "+want+" ") {
				t.Errorf("kubectl kudo %s: exit code %d, want the help of %s:\n%s", strings.Join(args, " "), code, want, out)
			}
		}
	}
}

func run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	nothing := func(string) (string, bool) { return "", false }
	code = cli.Run(t.Context(), command.Environment{Args: append([]string{"kubectl-kudo"}, args...), Out: &b, Err: &b, Lookup: nothing, Now: time.Now})
	return code, b.String()
}
