package account

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Each account has clients of its own, which are kept; the manager's are its own.
func TestClientsOf(t *testing.T) {
	c := NewClients(Clients{Config: &rest.Config{Host: "127.0.0.1:1"}, Scheme: runtime.NewScheme(), Mapper: meta.NewDefaultRESTMapper(nil)})
	if r, err := c.Of(Account{}); err != nil || r.Client != nil || r.Config != nil {
		t.Errorf("the manager has %+v, %v", r, err)
	}
	first, err := c.Of(deployer)
	if err != nil || first.Account != deployer || first.Files == nil || first.Config.Impersonate.UserName != "system:serviceaccount:shop:deployer" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := c.Of(deployer); err != nil || again.Client != first.Client {
		t.Error("its clients are made again", err)
	}
	other := Account{types.NamespacedName{Namespace: "bank", Name: "deployer"}}
	if r, err := c.Of(other); err != nil || r.Client == first.Client || r.Config.Impersonate.UserName != "system:serviceaccount:bank:deployer" {
		t.Errorf("the account of the same name of another namespace has %+v, %v", r.Config.Impersonate, err)
	}
}
