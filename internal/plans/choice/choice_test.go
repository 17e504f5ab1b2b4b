package choice

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// package1 is a version with all that a change can meet; package2 is the next one:
// OLD is gone, NEW and PINNED have come, and KEY can no longer be changed.
const package1 = `
parameters:
- {name: NODES, default: "3", value-type: integer}
- {name: COLOR, trigger: paint}
- {name: SHADE, trigger: paint}
- {name: SIZE, trigger: resize}
- {name: LOST, trigger: missing}
- {name: ALL, trigger: deploy}
- {name: MUST, required: true, default: m}
- {name: MODE, default: a, enum: [a, b]}
- {name: FIXED, default: f, immutable: true}
- {name: KEY, default: k}
- {name: OLD, default: o}
- {name: TONE, default: warm, trigger: paint}
plans: {deploy: {}, update: {}, upgrade: {}, paint: {}, resize: {}, cleanup: {}}
`

const package2 = `
parameters:
- {name: NODES, default: "3", value-type: integer}
- {name: COLOR, trigger: paint}
- {name: ALL, trigger: deploy}
- {name: FIXED, default: f2, immutable: true}
- {name: KEY, default: k, immutable: true}
- {name: NEW, default: n}
- {name: PINNED, default: p, immutable: true}
- {name: TONE, default: cold, trigger: paint}
plans: {deploy: {}, update: {}, upgrade: {}, paint: {}, cleanup: {}}
`

func versionSpec(t *testing.T, text string) *v1beta1.OperatorVersionSpec {
	t.Helper()
	spec := &v1beta1.OperatorVersionSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// specOf reads "app-1 NODES=4 COLOR=red".
func specOf(text string) *v1beta1.InstanceSpec {
	if text == "" {
		return nil
	}
	words := strings.Fields(text)
	spec := &v1beta1.InstanceSpec{Parameters: map[string]string{}}
	spec.OperatorVersion.Name = words[0]
	for _, pair := range words[1:] {
		name, value, _ := strings.Cut(pair, "=")
		spec.Parameters[name] = value
	}
	return spec
}

// TestChoose has each row of the tables of what was chosen at admission, as far as
// one plan is chosen or refused from what is wanted and what there is.
func TestChoose(t *testing.T) {
	const nothing = ""
	without := func(text, plan string) string { return strings.Replace(text, plan+": {}, ", "", 1) }
	for name, test := range map[string]struct {
		applied, attempted, want string
		// now and next are the packages, package1 and package2 if empty.
		now, next string
		// plan is what is chosen, problem a part of what is said if nothing is.
		plan, problem string
	}{
		"create":                               {want: "app-1", plan: "deploy"},
		"create, without a plan for it":        {want: "app-1", now: without(package1, "deploy"), problem: "has no plan deploy; use one that has it"},
		"create, with an unknown parameter":    {want: "app-1 NODE=4", problem: "spec.parameters.NODE: is not a parameter of OperatorVersion app-1; remove it"},
		"nothing changed":                      {applied: "app-1 NODES=4", want: "app-1 NODES=4", plan: nothing},
		"a parameter changed":                  {applied: "app-1 NODES=4", want: "app-1 NODES=5", plan: "update"},
		"a parameter is set":                   {applied: "app-1", want: "app-1 NODES=5", plan: "update"},
		"a parameter is removed":               {applied: "app-1 NODES=4", want: "app-1", plan: "update"},
		"without a plan update":                {applied: "app-1", want: "app-1 NODES=5", now: without(package1, "update"), plan: "deploy"},
		"a trigger":                            {applied: "app-1", want: "app-1 COLOR=red", plan: "paint"},
		"a trigger is removed":                 {applied: "app-1 COLOR=red", want: "app-1", plan: "paint"},
		"two that have the same trigger":       {applied: "app-1", want: "app-1 COLOR=red SHADE=dark", plan: "paint"},
		"a trigger, and one without":           {applied: "app-1", want: "app-1 COLOR=red NODES=4", plan: "paint"},
		"two distinct triggers":                {applied: "app-1", want: "app-1 COLOR=red SIZE=l", problem: "spec.parameters.SIZE: triggers plan resize, but COLOR has changed too and triggers plan paint"},
		"a trigger without its plan":           {applied: "app-1", want: "app-1 LOST=x", problem: "spec.parameters.LOST: triggers plan missing, which OperatorVersion app-1 does not have; revert the change"},
		"an unknown parameter":                 {applied: "app-1", want: "app-1 NODE=4", problem: "NODE: is not a parameter"},
		"one valid and one unknown is removed": {applied: "app-1 NODES=4 GONE=1", want: "app-1", plan: "update"},
		"an unknown one is left over":          {applied: "app-1 GONE=1", want: "app-1 GONE=1 NODES=4", plan: "update"},
		"an unknown one that is left changes":  {applied: "app-1 GONE=1", want: "app-1 GONE=2", problem: "GONE: is not a parameter"},
		"an unknown one is removed":            {applied: "app-1 GONE=1", want: "app-1", plan: nothing},
		"immutable changed":                    {applied: "app-1", want: "app-1 FIXED=g", problem: "spec.parameters.FIXED: is immutable; revert the change"},
		"immutable set to what it is":          {applied: "app-1", want: "app-1 FIXED=f", plan: nothing},
		"immutable, and no longer set":         {applied: "app-1 FIXED=f", want: "app-1", plan: nothing},
		"set to its default":                   {applied: "app-1", want: "app-1 NODES=3", plan: nothing},
		"no longer set to its default":         {applied: "app-1 NODES=3", want: "app-1", plan: nothing},
		"set to its default, with a trigger":   {applied: "app-1", want: "app-1 TONE=warm", plan: nothing},
		"one at its default, and another":      {applied: "app-1", want: "app-1 TONE=warm NODES=4", plan: "update"},
		"one at its default, another trigger":  {applied: "app-1", want: "app-1 TONE=warm SIZE=l", plan: "resize"},
		"back at its default, set":             {applied: "app-1 TONE=hot", want: "app-1 TONE=warm", plan: "paint"},
		"set to nothing, without a default":    {applied: "app-1", want: "app-1 COLOR=", plan: "paint"},
		"failed, and back at its default, set": {applied: "app-1", attempted: "app-1 TONE=hot", want: "app-1 TONE=warm", plan: "paint"},
		"failed with its default, and another": {applied: "app-1 TONE=hot", attempted: "app-1", want: "app-1 TONE=warm NODES=4", plan: "paint"},
		"immutable removed":                    {applied: "app-1 FIXED=g", want: "app-1", problem: "FIXED: is immutable"},
		"a wrong type":                         {applied: "app-1", want: "app-1 NODES=many", problem: "spec.parameters.NODES: must be an integer such as 3"},
		"not in the enum":                      {applied: "app-1", want: "app-1 MODE=c", problem: "spec.parameters.MODE: must be one of a, b"},

		"upgrade":                                {applied: "app-1", want: "app-2 KEY=k PINNED=p", plan: "upgrade"},
		"upgrade, without such a plan":           {applied: "app-1", want: "app-2 KEY=k PINNED=p", next: without(package2, "upgrade"), plan: "update"},
		"upgrade, with deploy alone":             {applied: "app-1", want: "app-2 KEY=k PINNED=p", next: without(without(package2, "upgrade"), "update"), plan: "deploy"},
		"upgrade, with none":                     {applied: "app-1", want: "app-2 KEY=k PINNED=p", next: without(without(without(package2, "upgrade"), "update"), "deploy"), problem: "has no plan upgrade, nor update, nor deploy"},
		"upgrade and a parameter":                {applied: "app-1", want: "app-2 KEY=k PINNED=p NODES=4", problem: "spec.parameters.NODES: triggers plan update and has changed together with the OperatorVersion"},
		"upgrade and a trigger":                  {applied: "app-1", want: "app-2 KEY=k PINNED=p COLOR=red", problem: "COLOR: triggers plan paint"},
		"upgrade and one that triggers deploy":   {applied: "app-1", want: "app-2 KEY=k PINNED=p ALL=x", plan: "upgrade"},
		"upgrade and one that is new":            {applied: "app-1", want: "app-2 KEY=k PINNED=p NEW=x", plan: "upgrade"},
		"upgrade, and keep the value":            {applied: "app-1", want: "app-2 KEY=k PINNED=p TONE=warm", plan: "upgrade"},
		"upgrade, and the new default":           {applied: "app-1", want: "app-2 KEY=k PINNED=p TONE=cold", plan: "upgrade"},
		"upgrade, and another value":             {applied: "app-1", want: "app-2 KEY=k PINNED=p TONE=hot", problem: "TONE: triggers plan paint"},
		"upgrade, and what was set no longer is": {applied: "app-1 TONE=warm", want: "app-2 KEY=k PINNED=p", problem: "TONE: triggers plan paint"},
		"after it, the former default":           {applied: "app-2 KEY=k PINNED=p", want: "app-2 KEY=k PINNED=p TONE=warm", plan: "paint"},
		"after it, the new default":              {applied: "app-2 KEY=k PINNED=p", want: "app-2 KEY=k PINNED=p TONE=cold", plan: nothing},
		"upgrade removes a parameter":            {applied: "app-1 OLD=x KEY=k", want: "app-2 OLD=x KEY=k PINNED=p", plan: "upgrade"},
		"upgrade, and it is removed as well":     {applied: "app-1 OLD=x KEY=k", want: "app-2 KEY=k PINNED=p", plan: "upgrade"},
		"upgrade adds immutable, not set":        {applied: "app-1 KEY=k", want: "app-2 KEY=k", problem: "spec.parameters.PINNED: becomes immutable with OperatorVersion app-2; set it"},
		"upgrade makes immutable, not set":       {applied: "app-1", want: "app-2 PINNED=p", problem: "spec.parameters.KEY: becomes immutable"},
		"upgrade keeps immutable":                {applied: "app-1 FIXED=f KEY=k", want: "app-2 FIXED=f KEY=k PINNED=p", plan: "upgrade"},
		"upgrade whose parameter is unknown":     {applied: "app-1 KEY=k", want: "app-2 KEY=k PINNED=p FOO=x", problem: "FOO: is not a parameter of OperatorVersion app-2"},
		"the same in another namespace":          {applied: "app-1", want: "app-1", plan: nothing},
		"a deploy that failed, and a change":     {attempted: "app-1 NODES=4", want: "app-1 NODES=5", plan: "deploy"},
		"a deploy that failed, and a trigger":    {attempted: "app-1", want: "app-1 COLOR=red", plan: "deploy"},
		"an update that failed, taken back":      {applied: "app-1 NODES=3", attempted: "app-1 NODES=4", want: "app-1 NODES=3", plan: "update"},
		"an update that failed, fixed":           {applied: "app-1 NODES=3", attempted: "app-1 NODES=4", want: "app-1 NODES=5", plan: "update"},
		"an upgrade that failed, taken back":     {applied: "app-1 KEY=k", attempted: "app-2 KEY=k PINNED=p", want: "app-1 KEY=k", plan: "upgrade"},
		"an upgrade that failed, fixed":          {applied: "app-1 KEY=k", attempted: "app-2 KEY=k PINNED=p", want: "app-2 KEY=k PINNED=p NODES=5", plan: "upgrade"},
		"an update that failed, and an upgrade":  {applied: "app-1 KEY=k", attempted: "app-1 KEY=k NODES=4", want: "app-2 KEY=k NODES=4 PINNED=p", plan: "upgrade"},
		"an update that failed, another trigger": {applied: "app-1", attempted: "app-1 SIZE=l", want: "app-1 COLOR=red", problem: "triggers plan resize"},
		"an immutable one after a failed deploy": {attempted: "app-1", want: "app-1 FIXED=g", problem: "FIXED: is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			packages := map[string]*v1beta1.OperatorVersionSpec{
				"app-1": versionSpec(t, orElse(test.now, package1)), "app-2": versionSpec(t, orElse(test.next, package2)),
			}
			c := Change{Namespace: "shop", Want: specOf(test.want), Applied: specOf(test.applied), Attempted: specOf(test.attempted)}
			c.New = packages[c.Want.OperatorVersion.Name]
			base := c.Applied
			if base == nil {
				base = c.Attempted
			}
			if base != nil {
				c.Old = packages[base.OperatorVersion.Name]
				c.Immutable = Immutables(c.Old, base.Parameters, nil)
			}
			c.AppliedWith, c.AttemptedWith = contentFor(packages, c.Applied), contentFor(packages, c.Attempted)
			got, problems := Choose(c)
			if got.Plan != test.plan {
				t.Errorf("plan = %q, want %q (%s)", got.Plan, test.plan, Sentences(problems))
			}
			if said := Sentences(problems); test.problem == "" && said != "" || !strings.Contains(said, test.problem) {
				t.Errorf("problems = %q, want %q", said, test.problem)
			}
		})
	}
}

func contentFor(packages map[string]*v1beta1.OperatorVersionSpec, spec *v1beta1.InstanceSpec) *v1beta1.OperatorVersionSpec {
	if spec == nil {
		return nil
	}
	return packages[spec.OperatorVersion.Name]
}

// TestADefaultOfAnotherTime: what a parameter was that was not set is known only from the
// content that was applied. If that is gone, setting the parameter is a change.
func TestADefaultOfAnotherTime(t *testing.T) {
	was, is := versionSpec(t, package1), versionSpec(t, strings.Replace(package1, `"3"`, `"5"`, 1))
	i := &v1beta1.Instance{Spec: *specOf("app-1 NODES=5")}
	for name, test := range map[string]struct {
		hash, plan string
	}{
		"the content that is":          {ContentHash(is), ""},
		"content that has been edited": {ContentHash(was), "update"},
		"a status that does not say":   {"", "update"},
	} {
		status := &v1beta1.InstanceStatus{LastAppliedInstanceSpec: specOf("app-1"), LastAppliedContentHash: test.hash}
		version := &Version{Name: "app-1", Spec: is, Hash: ContentHash(is)}
		if got, problems := Choose(ChangeOf(i, status, version, version)); got.Plan != test.plan || len(problems) > 0 {
			t.Errorf("%s: plan %q, %v", name, got.Plan, problems)
		}
		status.LastAppliedInstanceSpec, status.LastAppliedContentHash = specOf("app-1 NODES=5"), ContentHash(is)
		status.Attempted = &v1beta1.Attempt{Spec: *specOf("app-1"), ContentHash: test.hash, Touched: true}
		if got, problems := Choose(ChangeOf(i, status, version, version)); got.Plan != test.plan || len(problems) > 0 {
			t.Errorf("attempted with %s: plan %q, %v", name, got.Plan, problems)
		}
	}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func TestAnotherNamespaceIsAnotherVersion(t *testing.T) {
	spec := versionSpec(t, package1)
	want, applied := specOf("app-1"), specOf("app-1")
	want.OperatorVersion.Namespace = "shop"
	c := Change{Namespace: "shop", Want: want, Applied: applied, New: spec, Old: spec}
	if got, _ := Choose(c); got.Plan != "" {
		t.Errorf("the Instance's own namespace is named: %+v", got)
	}
	want.OperatorVersion.Namespace = "kudo"
	if got, _ := Choose(c); got.Plan != "upgrade" {
		t.Errorf("another namespace is named: %+v", got)
	}
}

// TestAProblemShowsNoValue: parameters may be passwords.
func TestAProblemShowsNoValue(t *testing.T) {
	spec := versionSpec(t, package1)
	for _, name := range []string{"NODES", "MODE", "FIXED", "LOST", "NONE"} {
		_, problems := Choose(Change{Want: specOf("app-1 " + name + "=hunter2"), Applied: specOf("app-1"), New: spec, Old: spec, Immutable: map[string]string{"FIXED": "f"}})
		if said := Sentences(problems); said == "" || strings.Contains(said, "hunter2") {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// TestALongListIsNotParsed: a list takes a hundred times as much memory as its text.
func TestALongListIsNotParsed(t *testing.T) {
	for kind, value := range map[v1beta1.ParameterType]string{v1beta1.ArrayType: "[" + strings.Repeat("a,", maxStructured/2) + "a]", v1beta1.MapType: "{a: " + strings.Repeat("a", maxStructured) + "}"} {
		if parsed, action := parse(kind, value); parsed != nil || action != "must be at most 256 KiB long" {
			t.Errorf("%s: %q", kind, action)
		}
	}
	if list, action := parse(v1beta1.ArrayType, "["+strings.Repeat("a,", maxStructured/2-2)+"a]"); list == nil || action != "" {
		t.Error(action)
	}
}
