package measure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Limits of the status.
const (
	samplesKept   = 5
	valueLength   = 256
	sentLength    = 2048
	messageLength = 1024
)

// State is what the status of a RolloutGate says of its measuring.
type State = v1alpha1.GateMeasurement

// Sample is one measurement.
type Sample struct {
	// At is when it began.
	At time.Time
	// Result is what came of it, Value what was measured, or what the error was.
	Result v1alpha1.GateResult
	Value  string
	// Sent is what the source was asked.
	Sent string
}

// Next is what is to be done about a gate.
type Next struct {
	// Measure is true if a measurement is due.
	Measure bool
	// TimedOut is true if there is no more time for one.
	TimedOut bool
	// Wake is when something is due, zero for never. It is set if neither is.
	Wake time.Time
	// End is when there is no more time, zero for never.
	End time.Time
}

// Begin is the state of a gate at which measuring begins.
func Begin(at time.Time, template v1alpha1.GateTemplateVersion, dryRun bool, r Rules) State {
	return State{
		Template: template, DryRun: dryRun, StartedAt: metav1.NewMicroTime(at), NextAt: moment(at.Add(r.InitialDelay)),
	}
}

// Look says what is to be done now.
func Look(s *State, r Rules, now time.Time) Next {
	if s.Verdict != "" || s.NextAt == nil {
		return Next{}
	}
	next := Next{Wake: s.NextAt.Time, End: r.end(s.StartedAt.Time)}
	if !next.End.IsZero() {
		if !now.Before(next.End) {
			return Next{TimedOut: true}
		}
		if next.End.Before(next.Wake) {
			next.Wake = next.End
		}
	}
	if !now.Before(s.NextAt.Time) {
		next.Measure, next.Wake = true, time.Time{}
	}
	return next
}

// TimeOut is the state after the time is over.
func TimeOut(s State, r Rules) State {
	return decide(s, v1alpha1.VerdictRefused, fmt.Sprintf("no verdict after %s (timeout): %s", r.Timeout, counts(&s))+last(&s))
}

// Add is the state with one more measurement.
func Add(s State, r Rules, m Sample) State {
	s.Job, s.Sent = nil, message.Cut(m.Sent, sentLength)
	s.Last = slices.Insert(slices.Clone(s.Last), 0, v1alpha1.GateSample{
		At: metav1.NewMicroTime(m.At), Result: m.Result, Value: message.Cut(m.Value, valueLength),
	})
	s.Last = s.Last[:min(len(s.Last), samplesKept)]
	s.NextAt = moment(m.At.Add(r.Interval))
	before := s.Succeeded + s.Failed
	count(&s, r, m.Result)
	counts := s.Succeeded+s.Failed > before
	verdict, why := conclude(&s, r, counts && r.mayPass(m.At))
	if verdict == "" {
		return s
	}
	return decide(s, verdict, why+last(&s))
}

// count counts a measurement.
func count(s *State, r Rules, result v1alpha1.GateResult) {
	switch result {
	case v1alpha1.GateError:
		s.Errors++
		s.ErrorsInRow++
		return
	case v1alpha1.GateNoData:
		s.NoData++
	default:
	}
	s.ErrorsInRow = 0
	switch {
	case result == v1alpha1.GateSuccess, result == v1alpha1.GateNoData && r.NoData == v1alpha1.NoDataPass:
		s.Succeeded++
		s.SuccessesInRow++
	case result == v1alpha1.GateFailure, result == v1alpha1.GateNoData && r.NoData == v1alpha1.NoDataFail:
		s.Failed++
		s.SuccessesInRow = 0
	default: // no data, and it is waited for
		s.SuccessesInRow = 0
	}
}

// conclude is the verdict that follows from what was measured, empty if there is none yet. It may
// only refuse if the last measurement is not one to pass with.
func conclude(s *State, r Rules, mayPass bool) (verdict v1alpha1.GateVerdict, why string) {
	done := r.Count != Unlimited && s.Succeeded+s.Failed >= r.Count
	switch {
	case s.ErrorsInRow > r.Errors:
		return v1alpha1.VerdictRefused, fmt.Sprintf("errors in a row: %d (errorLimit %d)", s.ErrorsInRow, r.Errors)
	case r.Failures != Unlimited && s.Failed > r.Failures:
		return v1alpha1.VerdictRefused, fmt.Sprintf("failed measurements: %d (failureLimit %d)", s.Failed, r.Failures)
	case !mayPass:
		return "", ""
	case r.InRow > 0 && s.SuccessesInRow >= r.InRow:
		return v1alpha1.VerdictPassed, fmt.Sprintf("succeeded in a row: %d", s.SuccessesInRow)
	case r.InRow > 0 && done:
		return v1alpha1.VerdictRefused, fmt.Sprintf("%d in a row did not succeed within %d measurements", r.InRow, r.Count)
	case r.InRow == 0 && done:
		return v1alpha1.VerdictPassed, counts(s)
	default:
		return "", ""
	}
}

func decide(s State, verdict v1alpha1.GateVerdict, why string) State {
	s.Verdict, s.Message, s.NextAt = verdict, message.Cut(why, messageLength), nil
	return s
}

// Sentence is what the measuring says, after the name of the gate.
func Sentence(s *State) string {
	switch {
	case s.Message != "":
		return s.Message
	case len(s.Last) == 0:
		return "no measurement yet" + running(s)
	default:
		return counts(s) + last(s) + running(s)
	}
}

// running is the Job that is waited for, as what follows a sentence.
func running(s *State) string {
	if s.Job == nil {
		return ""
	}
	return "; Job " + s.Job.Name + " is running"
}

// counts says how many measurements there were.
func counts(s *State) string {
	parts := []string{fmt.Sprintf("%d of %d measurements succeeded", s.Succeeded, s.Succeeded+s.Failed)}
	if s.NoData > 0 {
		parts = append(parts, fmt.Sprintf("%d without data", s.NoData))
	}
	if s.Errors > 0 {
		parts = append(parts, fmt.Sprintf("errors: %d", s.Errors))
	}
	return strings.Join(parts, ", ")
}

// last is the last measurement, as what follows a sentence.
func last(s *State) string {
	if len(s.Last) == 0 {
		return ""
	}
	m := &s.Last[0]
	switch {
	case m.Result == v1alpha1.GateNoData:
		return "; last: no data"
	case m.Value == "":
		return ""
	default:
		return "; last: " + m.Value
	}
}

func moment(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}
