package steering

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
)

// Policies refuse, to who is limited to acts, everything else on the objects of a ring.
func Policies(ring string) []client.Object {
	var objects []client.Object
	for i := range targets {
		if t := &targets[i]; t.ring == ring {
			objects = append(objects, t.policy(), t.binding())
		}
	}
	return objects
}

func (t *target) policyName() string { return t.name + ".steering.spillway.dev" }

func (t *target) policy() client.Object {
	return admission.Policy(t.policyName(), admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: admission.On(admissionregistrationv1.Update, t.group, t.version, t.resources...),
		MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "may-not-update", Expression: "!" + may("update")}},
		Variables:        t.variables(),
		Validations:      t.validations(),
	})
}

func (t *target) binding() client.Object {
	return admission.Binding(t.policyName(), t.policyName(), admissionregistrationv1.Deny)
}

// may is true, in CEL, if the user has a verb on the object. An expression may ask so only
// twice, and a variable is evaluated on its own, once, when it is read first.
func may(verb string) string { return "authorizer.requestResource.check('" + verb + "').allowed()" }

// variables are what the validations read.
func (t *target) variables() []admissionregistrationv1.Variable {
	all := []admissionregistrationv1.Variable{
		{Name: "was", Expression: "oldObject.metadata.?annotations.orValue({})"},
		{Name: "is", Expression: "object.metadata.?annotations.orValue({})"},
	}
	var limits []string
	for _, verb := range t.verbs() {
		all = append(all, admissionregistrationv1.Variable{Name: verb, Expression: may(verb)})
		limits = append(limits, "variables."+verb)
	}
	return append(all, admissionregistrationv1.Variable{Name: "unlimited", Expression: "!(" + strings.Join(limits, " || ") + ")"})
}

// validations are that nothing changes but what the acts change, and that each change of these
// is permitted.
func (t *target) validations() []admissionregistrationv1.Validation {
	var keys, fields []string
	for i := range t.acts {
		keys, fields = append(keys, t.acts[i].annotations...), append(fields, t.acts[i].fields...)
	}
	rest := []string{sameEntries("variables.was", "variables.is", keys)}
	for _, field := range []string{"labels", "finalizers", "ownerReferences"} {
		rest = append(rest, sameField("metadata."+field))
	}
	for _, field := range t.rest {
		rest = append(rest, sameField(field))
	}
	if len(fields) > 0 {
		rest = append(rest, sameEntries("dyn(oldObject.spec)", "dyn(object.spec)", fields))
	}
	all := []admissionregistrationv1.Validation{{
		Expression: "variables.unlimited || " + strings.Join(rest, " && "), Reason: forbidden(),
		MessageExpression: fmt.Sprintf("'with %s alone you may not change anything else; it takes the permission to update ' + %s", t.inWords(), resourceInCEL),
	}}
	for i := range t.acts {
		a := &t.acts[i]
		all = append(all, admissionregistrationv1.Validation{
			Expression:        fmt.Sprintf("variables.unlimited || %s || (%s)", a.unchanged(), a.permitted()),
			MessageExpression: fmt.Sprintf("'it takes the permission to ' + (%s) + ' ' + %s", a.verb(), resourceInCEL),
			Reason:            forbidden(),
		})
	}
	return all
}

// resourceInCEL is the resource as RBAC names it, with the group that it is in.
const resourceInCEL = "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)"

func forbidden() *metav1.StatusReason {
	reason := metav1.StatusReasonForbidden
	return &reason
}

// unchanged is true, in CEL, if the act was not done.
func (a *act) unchanged() string {
	var same []string
	for _, key := range a.annotations {
		same = append(same, fmt.Sprintf("variables.was[?'%[1]s'] == variables.is[?'%[1]s']", key))
	}
	for _, field := range a.fields {
		same = append(same, sameField("spec."+field))
	}
	return strings.Join(same, " && ")
}

// verb is, in CEL, the one that was done.
func (a *act) verb() string {
	if a.isPaused == "" {
		return "'" + Retry + "'"
	}
	return a.isPaused + " ? '" + Pause + "' : '" + Resume + "'"
}

// permitted is true, in CEL, if the user has the verb.
func (a *act) permitted() string {
	if a.isPaused == "" {
		return "variables." + Retry
	}
	return a.isPaused + " ? variables." + Pause + " : variables." + Resume
}

// sameField is true, in CEL, if a field of the object has not changed.
func sameField(path string) string {
	at := strings.LastIndexByte(path, '.')
	parent, field := path[:max(at, 0)], path[at+1:]
	if parent != "" {
		parent = "." + parent
	}
	return fmt.Sprintf("object%[1]s.?%[2]s == oldObject%[1]s.?%[2]s", parent, field)
}

// sameEntries is true, in CEL, if two maps differ in some keys alone.
func sameEntries(was, is string, but []string) string {
	return fmt.Sprintf("%[2]s.all(k, k in %[3]s || k in %[1]s && %[2]s[k] == %[1]s[k]) && %[1]s.all(k, k in %[3]s || k in %[2]s)", was, is, listInCEL(but))
}

func listInCEL(texts []string) string { return "['" + strings.Join(texts, "', '") + "']" }
