package cronjobs

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/follow"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func said(p plan) string {
	switch {
	case p.create != nil:
		return fmt.Sprintf("create %s, suspended: %v, as %s", p.create.Name, isTrue(p.create.Spec.Suspend), p.create.Labels[vocabulary.ConfigRun.Native])
	case p.register:
		return "register"
	case p.resume != "":
		return "resume as " + p.resume
	case p.record != "":
		return "record " + p.record
	case !p.wake.IsZero():
		return "wake"
	default:
		return "nothing"
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now, yes := time.Unix(100, 0), true
	suspended := func(o *observed) { o.cronJob.Spec.Suspend = &yes }
	forbids := func(o *observed) { o.cronJob.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent }
	replaces := func(o *observed) { o.cronJob.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent }
	active := func(uids ...string) func(*observed) {
		return func(o *observed) {
			for _, uid := range uids {
				o.cronJob.Status.Active = append(o.cronJob.Status.Active, corev1.ObjectReference{UID: types.UID("job-" + uid)})
			}
		}
	}
	waits := func(o *observed) {
		o.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job-own", Labels: map[string]string{vocabulary.ConfigRun.Native: queued}}, Spec: batchv1.JobSpec{Suspend: &yes}}
	}
	runs := func(o *observed) {
		o.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{vocabulary.ConfigSeen.Native: "its record"}}}
	}
	const name = "nightly-70ce871f8a"
	for title, test := range map[string]struct {
		given []func(*observed)
		want  string
	}{
		"nothing is recorded":                        {[]func(*observed){func(o *observed) { o.Record = "" }}, "record next"},
		"nothing has changed":                        {[]func(*observed){func(o *observed) { o.IsRecorded, o.Changed = true, nil }}, "nothing"},
		"other objects count":                        {[]func(*observed){func(o *observed) { o.Changed = nil }}, "record next"},
		"a change":                                   {nil, "create " + name + ", suspended: false, as started"},
		"a change that may be followed by another":   {[]func(*observed){func(o *observed) { o.Settled = now.Add(1) }}, "wake"},
		"config is missing":                          {[]func(*observed){func(o *observed) { o.Missing = make([]content.Missing, 1) }}, "nothing"},
		"suspended":                                  {[]func(*observed){suspended}, "record next"},
		"beside another run, as is allowed":          {[]func(*observed){active("other")}, "create " + name + ", suspended: false, as started"},
		"Forbid":                                     {[]func(*observed){forbids}, "create " + name + ", suspended: true, as queued"},
		"Forbid beside another run":                  {[]func(*observed){forbids, active("other")}, "nothing"},
		"Replace beside another run":                 {[]func(*observed){replaces, active("other")}, "nothing"},
		"a Job that is not registered":               {[]func(*observed){forbids, waits, active("other")}, "register"},
		"a Job that is registered beside another":    {[]func(*observed){forbids, waits, active("own", "other")}, "nothing"},
		"a Job that is registered alone":             {[]func(*observed){forbids, waits, active("own")}, "resume as next"},
		"a Job that waits, of one that now allows":   {[]func(*observed){waits, active("other")}, "resume as next"},
		"a Job that waits, of one that is suspended": {[]func(*observed){forbids, waits, active("own"), suspended}, "nothing"},
		"a Job that has started":                     {[]func(*observed){runs}, "record its record"},
		"a Job that another client suspends":         {[]func(*observed){waits, func(o *observed) { o.job.Labels = map[string]string{vocabulary.ConfigRun.Native: started} }}, "record next"},
		"Forbid, of a template that is suspended":    {[]func(*observed){forbids, func(o *observed) { o.cronJob.Spec.JobTemplate.Spec.Suspend = &yes }}, "create " + name + ", suspended: true, as started"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			o := &observed{Config: &follow.Config{Now: now, Settled: now, Record: "record", Next: "next", Changed: make([]content.Object, 1)}, cronJob: &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}}
			for _, change := range test.given {
				change(o)
			}
			if got := said(decide(o)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
