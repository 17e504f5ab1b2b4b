package account

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spillway-dev/spillway/internal/shell"
)

// denied is how the API server says what a user has no permission for.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`)

// denial is what a user has no permission for.
type denial struct{ user, verb, resource, group, namespace string }

// verbs are what plans do with objects, and watch to go on when these change.
const verbs = "get,list,watch,create,patch,delete"

// Denied says what an account may not do, and the commands that grant it; false of an error that
// says something else, or that is about the manager's own rights.
func Denied(a Account, err error) (sentence string, ok bool) {
	if a.IsManager() || err == nil {
		return "", false
	}
	m := denied.FindStringSubmatch(err.Error())
	if m == nil {
		return "", false
	}
	d := denial{m[1], m[2], m[3], m[4], m[5]}
	switch {
	case d.user == a.user():
		return fmt.Sprintf("%s has no permission to %s %s%s; grant it with: %s", a, d.verb, d.qualified(), d.where(), d.grant(a)), true
	case strings.HasPrefix(d.verb, "impersonate"): // or, since Kubernetes 1.36, a narrower permission to do so
		return fmt.Sprintf("the manager has no permission to act as %s; grant it with: %s", a, d.lend(a)), true
	default:
		return "", false
	}
}

// qualified is the resource as kubectl names it: "deployments.apps", "pods/exec".
func (d denial) qualified() string {
	resource, subresource, has := strings.Cut(d.resource, "/")
	if d.group != "" {
		resource += "." + d.group
	}
	if has {
		resource += "/" + subresource
	}
	return resource
}

func (d denial) where() string {
	if d.namespace == "" {
		return " in the whole cluster"
	}
	return " in namespace " + d.namespace
}

// grant are the commands that give the account what plans do with a resource.
func (d denial) grant(a Account) string {
	all := verbs
	if strings.Contains(d.resource, "/") {
		all = "create,get" // of Pods, which are entered
	}
	to := "--serviceaccount=" + a.Namespace + ":" + a.Name
	name := a.Name + "-" + strings.NewReplacer("/", "-").Replace(d.qualified())
	if d.namespace == "" {
		name = a.Namespace + "-" + name
		return shell.Join("kubectl", "create", "clusterrole", name, "--verb="+all, "--resource="+d.qualified()) + " && " +
			shell.Join("kubectl", "create", "clusterrolebinding", name, "--clusterrole="+name, to)
	}
	return bound(d.namespace, name, to, "--verb="+all, "--resource="+d.qualified())
}

// lend are the commands that let the manager act as the account.
func (d denial) lend(a Account) string {
	to := "--user=" + d.user
	if rest, ok := strings.CutPrefix(d.user, "system:serviceaccount:"); ok {
		to = "--serviceaccount=" + rest
	}
	return bound(a.Namespace, "act-as-"+a.Name, to, "--verb=impersonate", "--resource=serviceaccounts", "--resource-name="+a.Name)
}

// bound are the commands that create a Role and bind it.
func bound(namespace, name, to string, rules ...string) string {
	role := append([]string{"kubectl", "create", "role", name, "-n", namespace}, rules...)
	return shell.Join(role...) + " && " + shell.Join("kubectl", "create", "rolebinding", name, "-n", namespace, "--role="+name, to)
}
