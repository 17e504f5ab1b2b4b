package replica

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podsOf reads Pods: "0 1! 2~" are one that is ready, one that is not, one that terminates.
func podsOf(text string) []corev1.Pod {
	var pods []corev1.Pod
	for word := range strings.FieldsSeq(text) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-" + strings.TrimRight(word, "!~")}}
		p.Status.Phase = corev1.PodRunning
		status := corev1.ConditionTrue
		if strings.HasSuffix(word, "!") {
			status = corev1.ConditionFalse
		}
		if strings.HasSuffix(word, "~") {
			p.DeletionTimestamp = &metav1.Time{}
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		pods = append(pods, p)
	}
	return pods
}

func TestWhatIsDown(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		pods     string
		change   func(*appsv1.StatefulSet)
		want     string
	}{
		"all are up":            {2, "0 1", nil, "a-0 up, a-1 up"},
		"one is not ready":      {2, "0 1!", nil, "a-0 up, a-1 not ready"},
		"one is absent":         {2, "1", nil, "a-0 not created yet, a-1 up"},
		"one terminates":        {2, "0~ 1", nil, "a-0 terminating, a-1 up"},
		"one goes":              {1, "0 1~", nil, "a-0 up, a-1 terminating"},
		"one is to go":          {1, "0 1", nil, "a-0 up, a-1 beyond the replicas of its StatefulSet"},
		"another one, not this": {2, "0 7", nil, "a-0 up, a-1 not created yet, a-7 beyond the replicas of its StatefulSet"},
		"the spec is not seen":  {2, "0 1!", func(s *appsv1.StatefulSet) { s.Generation = 2 }, "a-0 unknown, a-1 not ready"},
		"ordinals from 5": {1, "5 0", func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
		}, "a-5 up, a-0 beyond the replicas of its StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.StatefulSetSpec{Replicas: &test.replicas}}
			if test.change != nil {
				test.change(set)
			}
			replicas := OfSet(set, podsOf(test.pods))
			var got []string
			down := 0
			for _, r := range replicas {
				got = append(got, fmt.Sprintf("%s %s", r.Name, r.State))
				if r.State != Up {
					down++
				}
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), test.want)
			}
			if first := FirstDown(replicas); (first == nil) != (down == 0) {
				t.Errorf("%d are down, the first is %v", down, first)
			}
		})
	}
}

// A status that counts more Pods than were listed speaks of Pods that are not known.
func TestPodsThatOnlyTheStatusCounts(t *testing.T) {
	zone := Zone{Name: "a", Replicas: 1, Counted: 3}
	replicas := Of(zone, podsOf("0"), func(p *corev1.Pod) Pod { return PodOf("a", p) })
	if len(replicas) != 3 || replicas[0].State != Up || replicas[2].State != Unknown {
		t.Errorf("%+v", replicas)
	}
}

// A StatefulSet of five that goes to three loses no Pod that ran: "3?" is one for which there is no
// node, "3+" one that no scheduler has seen yet.
func TestNeverRan(t *testing.T) {
	for name, test := range map[string]struct {
		pods string
		want bool
	}{
		"there is no node for either":             {"0 1 2 3? 4?", true},
		"whatever the others are":                 {"0! 1~ 3? 4?", true},
		"one runs":                                {"0 1 2 3 4?", false},
		"one is not ready":                        {"0 1 2 3! 4?", false},
		"one terminates":                          {"0 1 2 3? 4~", false},
		"one was replaced, and does not exist":    {"0 1 2 3?", false},
		"one was replaced, and has just begun":    {"0 1 2 3? 4+", false},
		"neither exists":                          {"0 1 2", false},
		"one beyond the spec is no concern of it": {"0 1 2 3? 4? 5", true},
	} {
		t.Run(name, func(t *testing.T) {
			pods := podsOf(test.pods)
			for i := range pods {
				p := &pods[i]
				p.Spec.NodeName = "n"
				if bare, unscheduled := strings.CutSuffix(p.Name, "?"); unscheduled {
					p.Name, p.Spec.NodeName, p.Status = bare, "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
						{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
					}}
				}
				if bare, unseen := strings.CutSuffix(p.Name, "+"); unseen {
					p.Name, p.Spec.NodeName, p.Status = bare, "", corev1.PodStatus{Phase: corev1.PodPending}
				}
			}
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(5))}}
			if got := NeverRan(set, pods, 3); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// What is about to be scaled away is down, and only that.
func TestLeaving(t *testing.T) {
	z := Zone{Name: "a", Replicas: 3, Leaving: 1}
	pods := []Pod{{Ordinal: 0, Ready: true}, {Ordinal: 1, Ready: true}, {Ordinal: 2, Ready: true}}
	replicas := Of(z, pods, func(p *Pod) Pod { return *p })
	if replicas[1].State != Up || replicas[2].State != Leaving || FirstDown(replicas) != &replicas[2] {
		t.Errorf("%+v", replicas)
	}
}
