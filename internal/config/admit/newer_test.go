package admit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// unreadable is an API server without objects that does not list one kind.
type unreadable struct {
	client.Reader

	kind string
	err  error
}

// List implements client.Reader.
func (u unreadable) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if u.kind != "" && strings.HasSuffix(fmt.Sprintf("%T", list), "."+u.kind+"List") {
		return u.err
	}
	return nil
}

// What cannot be read may hold the present content: no template gets it then by the write of a user.
func TestWhatIsNotKnownHoldsTheContent(t *testing.T) {
	failed := errors.New("the API server does not answer")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configrollouts"}, "", nil)
	for name, test := range map[string]struct {
		of   unreadable
		want string
	}{
		"all is known, and nothing holds it": {unreadable{}, ""},
		"policies":                           {unreadable{kind: "ConfigPolicy", err: failed}, "it is not known which policies hold it"},
		"policies of the cluster":            {unreadable{kind: "ClusterConfigPolicy", err: failed}, "it is not known which policies hold it"},
		"records":                            {unreadable{kind: "ConfigRollout", err: failed}, "it is not known what has failed"},
		"records that must not be read":      {unreadable{kind: "ConfigRollout", err: forbidden}, "it is not known what has failed"},
		"workloads":                          {unreadable{kind: "StatefulSet", err: failed}, "the other workloads are not known"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{
				lists: test.of, policies: func() *policy.Reader { return policy.NewReader(test.of, nil) },
				options: Options{Now: func() time.Time { return now }},
			}
			if got := h.held(t.Context(), arriving(), nil); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := (&handler{lists: unreadable{}}).held(t.Context(), arriving(), nil); got != "it is not known what has failed" {
		t.Errorf("without policies: %q", got)
	}
}

// Where namespaces follow one another, no write of a user gives a template the present content.
func TestStagesOfNamespacesHoldTheContent(t *testing.T) {
	db := content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}
	set := policy.Set{policy.Read(&v1alpha1.ClusterConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: "dev-first"}, Spec: v1alpha1.ClusterConfigPolicySpec{
		NamespaceStages:  []v1alpha1.ConfigNamespaceStage{{Name: "rest"}},
		ConfigPolicySpec: v1alpha1.ConfigPolicySpec{Objects: []v1alpha1.ConfigReference{{Kind: "Secret"}}},
	}})}
	if got := decidedBy(set, arriving(), db, nil); got != "ClusterConfigPolicy dev-first decides which namespace gets "+db.From(arriving().Namespace)+" first" {
		t.Errorf("%q", got)
	}
	if got := decidedBy(set.Alone(), arriving(), db, nil); got != "" {
		t.Errorf("without stages: %q", got)
	}
}

// A manifest without pins replaces a template that has some: those count. Pins that cannot be understood are none, and
// those before them do not count.
func TestPinsOfAnAttempt(t *testing.T) {
	pinned := func(names ...string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			for _, name := range names {
				w.Pinning.Pins = append(w.Pinning.Pins, pin.Pin{Kind: "ConfigMap", Name: name, Digest: "0123456789"})
			}
		}
	}
	invalid := func(w *workload.Workload) { w.Pinning.Invalid = "it is cut off" }
	for name, test := range map[string]struct {
		now  func(*workload.Workload)
		want []string
	}{
		"with pins":            {pinned("new"), []string{"new"}},
		"without pins":         {func(*workload.Workload) {}, []string{"old"}},
		"with pins of no form": {invalid, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range (attempt{now: arriving(test.now), before: arriving(pinned("old"))}).pins() {
				got = append(got, p.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
