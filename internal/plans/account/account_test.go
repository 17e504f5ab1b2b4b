package account

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

var deployer = Account{types.NamespacedName{Namespace: "shop", Name: "deployer"}}

func TestOf(t *testing.T) {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	if a := Of(i, ""); !a.IsManager() {
		t.Errorf("without an account it is %s", a)
	}
	if a := Of(i, "deployer"); a != deployer {
		t.Errorf("by default it is %s", a)
	}
	i.Spec.ServiceAccountName = "own"
	if a := Of(i, "deployer"); a.Name != "own" || a.Namespace != "shop" {
		t.Errorf("it is %s", a)
	}
	as := deployer.impersonate(&rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "other", Groups: []string{"system:masters"}}})
	if as.Impersonate.UserName != "system:serviceaccount:shop:deployer" || len(as.Impersonate.Groups) > 0 {
		t.Errorf("it asks as %+v", as.Impersonate) // groups would need another permission, and the API server adds those of the account
	}
}

func TestProblem(t *testing.T) {
	for name, want := range map[string]bool{"": false, "deployer": false, "a.b-c": false, "x:y": true, "../x": true, "A": true, "a/b": true, "*": true} {
		if got := Problem(name) != ""; got != want {
			t.Errorf("%q: a problem is to be %v: %s", name, want, Problem(name))
		}
	}
}

// What the API server says becomes a sentence with the commands that grant what is missing.
func TestDenied(t *testing.T) {
	for answer, want := range map[string]string{
		`secrets "app" is forbidden: User "system:serviceaccount:shop:deployer" cannot get resource "secrets" in API group "" in the namespace "shop"`: "ServiceAccount deployer of namespace shop has no permission to get secrets in namespace shop; grant it with: " +
			"kubectl create role deployer-secrets -n shop --verb=get,list,watch,create,patch,delete --resource=secrets && kubectl create rolebinding deployer-secrets -n shop --role=deployer-secrets --serviceaccount=shop:deployer",
		`deployments.apps "app" is forbidden: User "system:serviceaccount:shop:deployer" cannot patch resource "deployments" in API group "apps" in the namespace "shop": RBAC: role not found`: "ServiceAccount deployer of namespace shop has no permission to patch deployments.apps in namespace shop; grant it with: " +
			"kubectl create role deployer-deployments.apps -n shop --verb=get,list,watch,create,patch,delete --resource=deployments.apps && kubectl create rolebinding deployer-deployments.apps -n shop --role=deployer-deployments.apps --serviceaccount=shop:deployer",
		`namespaces "x" is forbidden: User "system:serviceaccount:shop:deployer" cannot create resource "namespaces" in API group "" at the cluster scope`: "ServiceAccount deployer of namespace shop has no permission to create namespaces in the whole cluster; grant it with: " +
			"kubectl create clusterrole shop-deployer-namespaces --verb=get,list,watch,create,patch,delete --resource=namespaces && kubectl create clusterrolebinding shop-deployer-namespaces --clusterrole=shop-deployer-namespaces --serviceaccount=shop:deployer",
		`pods "p" is forbidden: User "system:serviceaccount:shop:deployer" cannot create resource "pods/exec" in API group "" in the namespace "shop"`: "ServiceAccount deployer of namespace shop has no permission to create pods/exec in namespace shop; grant it with: " +
			"kubectl create role deployer-pods-exec -n shop --verb=create,get --resource=pods/exec && kubectl create rolebinding deployer-pods-exec -n shop --role=deployer-pods-exec --serviceaccount=shop:deployer",
		`serviceaccounts "deployer" is forbidden: User "system:serviceaccount:spillway-system:spillway" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`:        lent,
		`configmaps "app" is forbidden: User "system:serviceaccount:spillway-system:spillway" cannot impersonate-on:serviceaccount:get resource "configmaps" in API group "" in the namespace "shop"`: lent,
		`User "someone" cannot get resource "secrets" in API group "" in the namespace "shop"`:                                                                                                        "", // of the manager itself
		`pods "p" is forbidden: exceeded quota`: "",
		`roles.rbac.authorization.k8s.io "r" is forbidden: user "system:serviceaccount:shop:deployer" (groups=[]) is attempting to grant RBAC permissions not currently held`: "",
	} {
		if got, ok := Denied(deployer, errors.New(answer)); got != want || ok != (want != "") {
			t.Errorf("%s\nis %q\nwant %q", answer, got, want)
		}
		if got, ok := Denied(Account{}, errors.New(answer)); ok {
			t.Errorf("of the manager it says %q", got)
		}
	}
}

const lent = "the manager has no permission to act as ServiceAccount deployer of namespace shop; grant it with: " +
	"kubectl create role act-as-deployer -n shop --verb=impersonate --resource=serviceaccounts --resource-name=deployer && " +
	"kubectl create rolebinding act-as-deployer -n shop --role=act-as-deployer --serviceaccount=spillway-system:spillway"
