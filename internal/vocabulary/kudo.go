package vocabulary

// KUDOCommand is a command of KUDO's command line.
type KUDOCommand struct {
	// Words are the command, in which X is an argument, and Flags its flags with examples of their values.
	Words, Flags string
	// Differs says what differs in the command line of Spillway, empty if it is the same.
	Differs string
}

// KUDOGlobal are the flags that each command of KUDO has.
const KUDOGlobal = "--home=h --kubeconfig=k --namespace=n -n=n --request-timeout=5 -v=2 --v=2 --validate-install --help -h"

// KUDOCommands has every command of KUDO 0.19 but test, which runs kuttl with the flags of kuttl.
func KUDOCommands() []KUDOCommand {
	const asks = "also takes the directory of the package, and flags for each answer"
	return []KUDOCommand{
		{"init", "--client-only -c --kudo-image=i -i=i --kudo-image-pull-policy=Always --version=1 --output=yaml -o=yaml --dry-run --upgrade --verify --crd-only --wait -w --wait-timeout=9 --service-account=s --unsafe-self-signed-webhook-ca", "--version accepts the version of the program alone: use the program of the version that you want; --kudo-image names an image of Spillway; --service-account is refused, because the manager has an account of its own with the permissions that it needs"},
		{"install X", "--instance=i --parameter=A -p=A --parameter-file=f -P=f --repo=r --app-version=1 --operator-version=1 --skip-instance --wait --wait-time=9 --create-namespace --in-cluster", ""},
		{"update", "--instance=i --parameter=A -p=A --parameter-file=f -P=f --wait --wait-time=9", ""},
		{"upgrade X", "--instance=i --parameter=A -p=A --parameter-file=f -P=f --repo=r --app-version=1 --operator-version=1", ""},
		{"uninstall", "--instance=i --wait --wait-time=9", ""},
		{"get X", "--output=json -o=yaml", ""},
		{"plan history", "--instance=i", ""},
		{"plan history X", "--instance=i", ""},
		{"plan status", "--instance=i --wait --output=yaml -o=json", ""},
		{"plan trigger", "--instance=i --name=p --wait --wait-time=9", ""},
		{"plan trigger X", "--instance=i", ""},
		{"diagnostics collect", "--instance=i --log-since=10m --output-directory=d -O=d", ""},
		{"package add maintainer", "--interactive -i", asks},
		{"package add parameter", "--interactive -i", asks},
		{"package add plan", "--interactive -i", asks},
		{"package add task", "--interactive -i", asks},
		{"package create X", "--destination=d -d=d --overwrite -w --output=json -o=yaml", ""},
		{"package list parameters X", "--descriptions -d --required -r --names --repo=r --app-version=1 --operator-version=1", "--required lists only parameters without a default, as KUDO's documentation says"},
		{"package list plans X", "--with-tasks -t --repo=r --app-version=1 --operator-version=1", ""},
		{"package list tasks X", "--repo=r --app-version=1 --operator-version=1", ""},
		{"package new X", "--interactive -i --overwrite -w", ""},
		{"package verify X", "--output=yaml -o=json --param-checks=all --param-checks=display,hint,desc,type,hasgroup,groups", "finds more, and names the file and the line of each error and warning"},
		{"repo add X X", "--skip-check -f", ""},
		{"repo context X", "", ""},
		{"repo index X", "--url=u --url-repo=r --merge=u --merge-repo=r --overwrite -w", ""},
		{"repo list", "", ""},
		{"repo remove X", "", ""},
		{"search X", "--repo=r --all-versions -a", ""},
		{"version", "--output=yaml -o=json", ""},
	}
}
