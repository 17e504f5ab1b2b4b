package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) {
	testenv.Parallel(4)
	testenv.Main(m, testenv.Options{})
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: KIND, plural: PLURAL}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// A manager notices a kind that is installed later, by a watch where it may watch the
// definition of this one kind, and otherwise too.
func TestAKindThatIsInstalledLater(t *testing.T) {
	for name, test := range map[string]struct {
		kind, plural string
		permitted    bool
	}{
		"permitted": {"Policy", "policies", true},
		"forbidden": {"Widget", "widgets", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(testenv.Shared().Config(), client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			unique := fmt.Sprintf("K%d", time.Now().UnixNano())
			test.kind, test.plural = unique+test.kind, strings.ToLower(unique)+test.plural
			kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: test.kind}
			user, inj := "manager-of-"+test.plural, fault.New()
			if test.permitted {
				permit(t, c, user, test.plural+".example.com")
			}
			mgr, err := ctrl.NewManager(inj.Wrap(testenv.Shared().ConfigAs(user)), ctrl.Options{Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}})
			if err != nil {
				t.Fatal(err)
			}
			started := make(chan struct{})
			needed := kube.Needed{Ring: "example", Called: "the kind is", Kinds: []schema.GroupVersionKind{kind}}
			err = needed.Start(t.Context(), mgr, func(context.Context) error { close(started); return nil })
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- mgr.Start(ctx) }()
			testenv.Eventually(t, func(context.Context) error { return asked(inj, test.permitted) })
			testenv.ApplyManifest(t, c, strings.NewReplacer("KIND", test.kind, "PLURAL", test.plural).Replace(definition))
			<-started
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// permit lets a user watch one definition.
func permit(t *testing.T, c client.Client, user, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{name}, Verbs: []string{"list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// asked is an error until the manager waits: it watches the definition, if it may.
func asked(inj *fault.Injector, permitted bool) error {
	verb := "list"
	if permitted {
		verb = "watch"
	}
	is := func(r fault.Request) bool { return r.Resource == "customresourcedefinitions" && r.Verb == verb }
	if !slices.ContainsFunc(inj.Requests(), is) {
		return errors.New("it does not wait yet")
	}
	return nil
}
