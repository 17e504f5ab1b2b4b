package simulate_test

import (
	"fmt"
	"strings"
)

// refused are objects as they are made, and what is applied over each of them: an API
// server refuses it, and says of which fields.
var refused = []struct {
	what, manifest string
	changes        []string // "old => new" in the text of the manifest
}{
	{"config", "{apiVersion: v1, kind: ConfigMap, metadata: {name: sealed}, data: {a: b}, immutable: true}", []string{
		"{a: b} => {a: c}", "true => false", "data: {a: b} => binaryData: {a: Yg==}",
	}},
	{"secret", "{apiVersion: v1, kind: Secret, metadata: {name: sealed}, stringData: {a: b}, immutable: true}", []string{
		"{a: b} => {a: c}", "true => false", "stringData => type: example.com/other, stringData",
	}},
	{"set", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: refused}
spec:
  replicas: 0
  serviceName: x
  selector: {matchLabels: {app: refused}}
  template:
    metadata: {labels: {app: refused, other: other}}
    spec: {containers: [{name: c, image: c}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, []string{
		"storage: 1Gi => storage: 1024Mi", "storage: 1Gi => storage: 2Gi", "serviceName: x => serviceName: z", "matchLabels: {app: refused} => matchLabels: {other: other}",
		"matchLabels: {app: refused} => matchLabels: {app: none}", "replicas: 0 => podManagementPolicy: Parallel", "replicas: 0 => podManagementPolicy: Anyhow",
		"replicas: 0 => replicas: -1", "replicas: 0 => minReadySeconds: -1", "replicas: 0 => ordinals: {start: -1}",
		"replicas: 0 => updateStrategy: {type: OnDelete}", "replicas: 0 => updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 1}}",
		"replicas: 0 => updateStrategy: {type: Rolling, rollingUpdate: {maxUnavailable: 1}}", "replicas: 0 => updateStrategy: {rollingUpdate: {partition: -1}}",
		"replicas: 0 => updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", "replicas: 0 => updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}",
		"replicas: 0 => updateStrategy: {rollingUpdate: {maxUnavailable: few}}",
	}},
	{"deployment", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: refused}
spec:
  replicas: 0
  selector: {matchLabels: {app: refused}}
  template:
    metadata: {labels: {app: refused, other: other}}
    spec: {containers: [{name: c, image: c}]}
`, []string{
		"matchLabels: {app: refused} => matchLabels: {other: other}", "replicas: 0 => replicas: -1", "replicas: 0 => minReadySeconds: -1",
		"replicas: 0 => minReadySeconds: 600", "replicas: 0 => progressDeadlineSeconds: -1", "replicas: 0 => strategy: {type: Recreate}", "replicas: 0 => strategy: {type: Rolling}",
		"replicas: 0 => strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 0}}", "replicas: 0 => strategy: {rollingUpdate: {maxUnavailable: 200%, maxSurge: 200%}}",
		"replicas: 0 => strategy: {rollingUpdate: {maxSurge: -1}}",
	}},
	{"daemon set", `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: refused}
spec:
  minReadySeconds: 0
  selector: {matchLabels: {app: refused}}
  template:
    metadata: {labels: {app: refused, other: other}}
    spec: {containers: [{name: c, image: c}], nodeSelector: {no: where}}
`, []string{
		"matchLabels: {app: refused} => matchLabels: {other: other}", "minReadySeconds: 0 => minReadySeconds: -1",
		"minReadySeconds: 0 => updateStrategy: {type: OnDelete}", "minReadySeconds: 0 => updateStrategy: {type: Rolling}",
		"minReadySeconds: 0 => updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}",
		"minReadySeconds: 0 => updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}",
	}},
	{"job", `
apiVersion: batch/v1
kind: Job
metadata: {name: refused}
spec:
  completions: 1
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: c}], nodeSelector: {no: where}}
`, []string{"image: c => image: d", "completions: 1 => completions: 2", "completions: 1 => backoffLimit: 3"}},
}

// callWhatIsRefused creates each object, as well without what it has to have, and then
// applies each change.
func (a *caller) callWhatIsRefused() {
	for _, r := range refused {
		if strings.Contains(r.manifest, "selector") {
			_, err := a.apply("user", strings.Replace(r.manifest, "selector", "#", 1))
			a.did(r.what+" without a selector", err)
			_, err = a.apply("user", strings.Replace(r.manifest, "matchLabels: {app: refused}", "matchLabels: {}", 1))
			a.did(r.what+" with an empty selector", err)
		}
		_, err := a.apply("user", r.manifest)
		a.did(r.what, err)
		for _, change := range r.changes {
			before, after, _ := strings.Cut(change, " => ")
			u, err := a.apply("user", strings.Replace(r.manifest, before, after, 1))
			a.did(fmt.Sprintf("%s: %s", r.what, change), err, u.GetGeneration())
		}
	}
}
