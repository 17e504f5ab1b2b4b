package history

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe/describetest"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// followed follows the Events of a namespace through an injector.
func followed(t *testing.T, namespace string, requests *fault.Injector, tell func(*Event) error, lost func(error)) error {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(requests.Wrap(rest.CopyConfig(testenv.Shared().Config())), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Follow(ctx, c, namespace, tell, lost)
}

// If nobody answers at first, that is an error and no silence.
func TestNobodyAnswersWhoFollows(t *testing.T) {
	requests := fault.New()
	requests.Cut()
	err := followed(t, testenv.Namespace(t), requests, func(*Event) error { return nil }, func(error) {})
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// Later that is said once, and what was written meanwhile is told.
func TestFollowingOutlivesAnOutage(t *testing.T) {
	c, _ := describetest.ClientAs(t, "")
	namespace, requests, enough := testenv.Namespace(t), fault.New(), errors.New("enough")
	write := func(name string) {
		if err := c.Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, EventTime: metav1.NowMicro(), Type: "Normal", Reason: "ZoneDone", Action: "Roll",
			ReportingController: Reporters()[0], ReportingInstance: "test", Note: name,
			Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "app"},
		}); err != nil {
			t.Error(err)
		}
	}
	write("before")
	losses := 0
	err := followed(t, namespace, requests, func(n *Event) error {
		switch n.Text {
		case "meanwhile":
			return enough
		case "cut-off":
			return nil
		}
		testenv.Eventually(t, func(context.Context) error { return allWatch(requests) })
		requests.Cut()
		write("cut-off") // the watch ends instead of delivering it
		return nil
	}, func(error) {
		losses++
		write("meanwhile")
		requests.Restore()
	})
	if !errors.Is(err, enough) || losses != 1 {
		t.Errorf("after %d losses it ends with %v", losses, err)
	}
}

// allWatch is nil once there is a watch of each reporter.
func allWatch(requests *fault.Injector) error {
	watches := 0
	for _, r := range requests.Requests() {
		if r.Verb == "watch" {
			watches++
		}
	}
	if watches < len(Reporters()) {
		return fmt.Errorf("there are %d watches", watches)
	}
	return nil
}
