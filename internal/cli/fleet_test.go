package cli_test

import (
	"context"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// cluster NAME [LABEL=VALUE...]: a cluster of the fleet, which is the hub itself.
func fleetCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: cluster NAME [LABEL=VALUE...]")
	}
	kubeconfig, err := clientcmd.LoadFromFile(testenv.Shared().Kubeconfig())
	ts.Check(err)
	ts.Check(clientcmd.ResolveLocalPaths(kubeconfig))
	ts.Check(clientcmdapi.FlattenConfig(kubeconfig))
	raw, err := clientcmd.Write(*kubeconfig)
	ts.Check(err)
	labels := map[string]string{"spillway.dev/cluster": "true"}
	for _, label := range args[1:] {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = value
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ts.Getenv("NS"), Name: args[0] + "-kubeconfig", Labels: labels},
		Data:       map[string][]byte{"value": raw},
	}
	ts.Check(fleetClient(ts).Create(context.Background(), secret))
}

// may yes|no VERB RESOURCE[.GROUP]: whether the hub may do something on cluster c1, in the namespace of the script.
func hubMay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: may yes|no VERB RESOURCE[.GROUP]")
	}
	secret := &corev1.Secret{}
	ts.Check(fleetClient(ts).Get(context.Background(), client.ObjectKey{Namespace: ts.Getenv("NS"), Name: "c1-kubeconfig"}, secret))
	as, err := command.Dial(secret.Data["value"])
	ts.Check(err)
	resource, group, _ := strings.Cut(args[2], ".")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ts.Getenv("NS"), Verb: args[1], Group: group, Resource: resource},
	}}
	ts.Check(as.Create(context.Background(), review))
	if review.Status.Allowed != (args[0] == "yes") {
		ts.Fatalf("it may: %v", review.Status.Allowed)
	}
}

func fleetClient(ts *testscript.TestScript) client.Client {
	scheme, err := kube.NewScheme()
	ts.Check(err)
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	ts.Check(err)
	return c
}

// reporting STATE TEXT COMMAND ARG...: report of all clusters what became of what they
// are assigned, until the output of the command has the text.
func reporting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: reporting STATE TEXT COMMAND ARG...")
	}
	c := fleetClient(ts)
	showsEventually(ts, args[1], args[2:], func() { reportAll(ts, c, v1alpha1.State(args[0])) })
}

// reportAll plays the controller of all Assemblages.
func reportAll(ts *testscript.TestScript, c client.Client, state v1alpha1.State) {
	list := &v1alpha1.AssemblageList{}
	ts.Check(c.List(context.Background(), list, client.InNamespace(ts.Getenv("NS"))))
	for i := range list.Items {
		a := &list.Items[i]
		a.Status.ObservedGeneration = a.Generation
		before := a.Status.Syncs
		a.Status.Syncs = nil
		for j := range a.Spec.Syncs {
			a.Status.Syncs = append(a.Status.Syncs, reportOf(&a.Spec.Syncs[j], before, state))
		}
		if err := c.Status().Update(context.Background(), a); !apierrors.IsConflict(err) {
			ts.Check(client.IgnoreNotFound(err))
		}
	}
}

// reportOf is what became of one sync; what was reported before of the same
// assignment stays.
func reportOf(s *v1alpha1.NamedSync, before []v1alpha1.SyncStatus, state v1alpha1.State) v1alpha1.SyncStatus {
	i := slices.IndexFunc(before, func(b v1alpha1.SyncStatus) bool {
		return b.Name == s.Name && b.AssignedAt.Equal(s.AssignedAt) && b.State != v1alpha1.StateUpdating
	})
	if i >= 0 {
		return before[i]
	}
	now := metav1.NowMicro()
	report := v1alpha1.SyncStatus{Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: state, LastTransitionTime: &now}
	if state == v1alpha1.StateSucceeded {
		report.LastSucceededRevision = s.Revision
	} else {
		report.Reason, report.Message = "HealthCheckFailed", "Deployment web is not ready"
	}
	return report
}

// told REASON NOTE: there is an Event by the commands.
func told(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: told REASON NOTE")
	}
	list := &eventsv1.EventList{}
	ts.Check(fleetClient(ts).List(context.Background(), list, client.InNamespace(ts.Getenv("NS"))))
	if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == args[0] && e.Note == args[1] }) {
		ts.Fatalf("there is no Event %s %q", args[0], args[1])
	}
}
