package vocabulary

// Annotations on Instances: what a user requests of the plan that runs, or of the
// last one. The value is the uid of the execution, or JSON with uid, reason and by.
var (
	// AbandonPlan stops the running plan.
	AbandonPlan = Key{Native: "spillway.dev/abandon-plan"}
	// RetryPlan retries the plan from the step that failed.
	RetryPlan = Key{Native: "spillway.dev/retry-plan"}
	// SupersedePlan lets a new spec replace the one that the running plan applies.
	SupersedePlan = Key{Native: "spillway.dev/supersede-plan"}
	// PlanGates lists the gates of an Instance's plans, as YAML: plan, phase, step, when, name
	// and onRefusal of each.
	PlanGates = Key{Native: "spillway.dev/gates"}
	// LastAppliedInstanceState is where old versions of KUDO kept the
	// spec that was last applied. It is read and never written.
	LastAppliedInstanceState = Key{Native: "kudo.dev/last-applied-instance-state"}
)

// Annotations on the objects of an Instance, or in the templates of them.
var (
	// Instance is NAMESPACE/NAME of the Instance that an object belongs to.
	Instance = Key{Native: "spillway.dev/instance"}
	// Adopt set to "true" lets an Instance adopt an object that is not its own.
	Adopt = Key{Native: "spillway.dev/adopt"}
	// OnImmutable says what happens when a field would change that cannot: "fail",
	// or "recreate" the object.
	OnImmutable = Key{Native: "spillway.dev/on-immutable"}
	// LoseDataOnRecreate set to "true" permits that OnImmutable also recreates what holds data,
	// which is lost: a PersistentVolumeClaim, a PersistentVolume, a StatefulSet that deletes its
	// claims, a Secret with generated values, a Namespace, a CustomResourceDefinition, an Instance.
	LoseDataOnRecreate = Key{Native: "spillway.dev/lose-data-on-recreate"}
	// Prune set to "false" on an object, or on an OperatorVersion for all that it
	// renders, keeps what is no longer rendered.
	Prune = Key{Native: "spillway.dev/prune"}
	// GenerateOnce lists keys of a Secret and lengths, "password=32, token=16", that get a
	// random value if they have none.
	GenerateOnce = Key{Native: "spillway.dev/generate-once"}
	// SkipHashCalculation keeps changes of a ConfigMap or Secret from rolling anything, and on a workload
	// of a package changes of its config from rolling it.
	SkipHashCalculation = Key{Native: "kudo.dev/skip-hash-calculation"}
)

// The labels by which users of KUDO find their objects.
const (
	// Heritage is a label; its value is HeritageOf.
	Heritage   = "heritage"
	HeritageOf = "kudo"
	// OperatorLabel and InstanceLabel are labels.
	OperatorLabel = "kudo.dev/operator"
	InstanceLabel = "kudo.dev/instance"
	// OperatorVersionAnnotation is on Pod templates.
	OperatorVersionAnnotation = "kudo.dev/operator-version"
	// These annotations say by which step of which plan an object was applied last.
	PlanAnnotation      = "kudo.dev/plan"
	PhaseAnnotation     = "kudo.dev/phase"
	StepAnnotation      = "kudo.dev/step"
	ExecutionAnnotation = "kudo.dev/last-plan-execution-uid"
	// CleanupFinalizer keeps an Instance until its cleanup plan has run.
	CleanupFinalizer = "kudo.dev.instance.cleanup"
)

// PackagePermissions is a label on ClusterRoles, set to "true", whose rules the
// plans ring gets, so that it may apply what packages render.
const PackagePermissions = "plans.spillway.dev/packages"

// What KUDO has left in a cluster, and on the objects that it applied.
const (
	// DependenciesHash is on Pod templates: a hash of the config that is mounted.
	DependenciesHash = "kudo.dev/dependencies-hash"
	// LastAppliedConfiguration is what was applied last, as JSON.
	LastAppliedConfiguration = "kudo.dev/last-applied-configuration"
	// KUDOWebhook is its webhook configuration. While it exists, no client can change
	// an Instance without KUDO.
	KUDOWebhook = "kudo-manager-instance-admission-webhook-config"
	// KUDOManager is its name in managedFields.
	KUDOManager = "manager"
)
