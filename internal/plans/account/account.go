package account

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Account is a ServiceAccount; the zero Account is the manager's own.
type Account struct{ types.NamespacedName }

// Of returns the account as which the plans of an Instance act.
func Of(i *v1beta1.Instance, byDefault string) Account {
	name := i.Spec.ServiceAccountName
	if name == "" {
		name = byDefault
	}
	if name == "" {
		return Account{}
	}
	return Account{types.NamespacedName{Namespace: i.Namespace, Name: name}}
}

// IsManager reports whether it is the manager's own.
func (a Account) IsManager() bool { return a == Account{} }

// String is how messages name the account.
func (a Account) String() string {
	return "ServiceAccount " + a.Name + " of namespace " + a.Namespace
}

// Problem is why no ServiceAccount has this name, empty if one can.
func Problem(name string) string {
	if problems := validation.NameIsDNSSubdomain(name, false); name != "" && len(problems) > 0 {
		return fmt.Sprintf("invalid value %s: must be the name of a ServiceAccount: lowercase letters, digits, - and .", message.Quote(name))
	}
	return ""
}

// user is the name of the account as a user.
func (a Account) user() string {
	return "system:serviceaccount:" + a.Namespace + ":" + a.Name
}

// impersonate returns the configuration of a client that acts as the account.
func (a Account) impersonate(config *rest.Config) *rest.Config {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: a.user()}
	return as
}
