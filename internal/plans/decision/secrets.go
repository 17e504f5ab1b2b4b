package decision

import (
	"encoding/base64"
	"maps"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
)

// mostSecret is how long the value of a parameter may be.
const mostSecret = 64 << 10

// takesSecrets reads the values of parameters that stand in Secrets, and sets tokens for them in
// the spec that is compared and kept: so a changed value is a changed parameter. It returns false
// while something must be read. What is wrong keeps plans from beginning.
func (d *decider) takesSecrets() bool {
	sources := d.Instance.Spec.ParametersFrom
	if len(sources) == 0 {
		return true
	}
	own, instance := *d.Snapshot, *d.Instance
	d.Snapshot, own.Instance = &own, &instance
	d.secrets = map[string]string{}
	parameters := choice.WithTokens(&instance.Spec)
	for i := range sources {
		value, problem, token := d.secret(&sources[i])
		switch {
		case problem != nil:
			d.lacking = append(d.lacking, *problem)
		case token != "" && choice.IsToken(parameters[sources[i].Name]):
			parameters[sources[i].Name], d.secrets[token] = token, value
		}
	}
	instance.Spec.Parameters = parameters
	own.Hidden = task.NewHidden(slices.Collect(maps.Values(d.secrets)))
	return d.Needs.IsEmpty()
}

// secret is the value of a parameter, and the token for it; or what a user must do first.
func (d *decider) secret(from *v1beta1.ParameterSource) (value string, problem *choice.Problem, token string) {
	lacks := func(action string) *choice.Problem {
		return &choice.Problem{Field: "spec.parametersFrom", Action: "parameter " + from.Name + ": " + action}
	}
	key := from.SecretKeyRef
	ref := object.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: d.Instance.Namespace, Name: key.Name}
	if d.Account.IsManager() {
		return "", lacks("Secrets are read as an account only; set spec.serviceAccountName"), ""
	}
	if why := ref.Problem(); why != "" {
		return "", lacks(why), ""
	}
	if why, ok := d.Forbidden[ref]; ok {
		return "", lacks(why), ""
	}
	u, read := d.Objects[ref]
	switch {
	case !read:
		d.Needs.Add(task.Needs{Objects: []object.Ref{ref}})
		return "", nil, ""
	case u == nil:
		return "", lacks("Secret " + key.Name + " not found; create it"), ""
	}
	encoded, has, _ := unstructured.NestedString(u.Object, "data", key.Key)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case !has || err != nil:
		return "", lacks("Secret " + key.Name + " has no key " + key.Key + "; add it"), ""
	case len(raw) > mostSecret || !utf8.Valid(raw):
		return "", lacks("key " + key.Key + " of Secret " + key.Name + " must be text of at most 64 KiB"), ""
	default:
		return string(raw), nil, choice.Token(from, u.GetUID(), string(raw))
	}
}

// lacksSecrets is the link of an Instance of which a parameter has no value.
func (d *decider) lacksSecrets() bool {
	return len(d.lacking) > 0 && d.stalls(d.lacking...)
}

// values are the parameters as templates see them, with those that stand in Secrets.
func (d *decider) values(version *choice.Version, set map[string]string) (map[string]any, []choice.Problem) {
	if len(d.lacking) > 0 {
		return nil, d.lacking
	}
	set, problems := d.reveal(set)
	if len(problems) > 0 {
		return nil, problems
	}
	immutable := maps.Clone(d.Status.ImmutableParameters)
	maps.DeleteFunc(immutable, func(name, _ string) bool { _, isSet := set[name]; return isSet })
	if immutable, problems = d.reveal(immutable); len(problems) > 0 {
		return nil, problems
	}
	return choice.Values(version.Spec, set, immutable)
}

// reveal has values for tokens. A plan that began with another value cannot go on: that is gone.
func (d *decider) reveal(parameters map[string]string) (map[string]string, []choice.Problem) {
	var problems []choice.Problem
	revealed := maps.Clone(parameters)
	for name, value := range parameters {
		if secret, ok := d.secrets[value]; ok {
			revealed[name] = secret
		} else if choice.IsToken(value) {
			problems = append(problems, choice.Problem{Field: "spec.parametersFrom", Action: "parameter " + name + ": its Secret has changed since the plan began; retry the plan"})
		}
	}
	return revealed, problems
}
