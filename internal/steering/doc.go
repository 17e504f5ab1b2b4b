// Package steering lets an administrator grant single acts: a verb of its own for each, which
// ValidatingAdmissionPolicies of the API server check.
//
// A write takes the verb patch on the whole object; RBAC knows no fields. Who may patch an
// object, may not update it, and has at least one of the verbs [Pause], [Resume] and [Retry] on
// it, is limited to these acts. All others are not affected: roles that let people edit objects
// have the verb update, and controllers that only patch have none of the verbs.
package steering
