package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// flagRows have a value of each flag and variable of each former program, and what becomes of it: the argument of the
// manager, = if it is the flag itself; "watch" and the namespaces; or the beginning of what has its effect.
var flagRows = map[string]string{
	"wave leader-election":           "true nothing is needed",
	"wave leader-election-id":        "x nothing is needed",
	"wave leader-election-namespace": "x nothing is needed",
	"wave sync-period":               "5m =",
	"wave update-rate":               "0.5 =",
	"wave update-burst":              "7 =",
	"wave enable-webhooks":           "true spillway install --webhooks",
	"wave namespaces":                "b,a watch a b",
	"wave version":                   "true prints the version",
	"wave kubeconfig":                "/k nothing is needed",
	"wave zap-devel":                 "true the level debug",
	"wave zap-encoder":               "json console is the format text",
	"wave zap-log-level":             "debug panic is the level error",
	"wave zap-stacktrace-level":      "error no stack traces",
	"wave zap-time-encoding":         "iso8601 the format of times",

	"reloader auto-reload-all":                "true =",
	"reloader namespaces":                     "a watch a",
	"reloader KUBERNETES_NAMESPACE":           "shop watch shop",
	"reloader namespaces-to-ignore":           "kube-system =",
	"reloader namespace-selector":             "team=shop =",
	"reloader resource-label-selector":        "app=x =",
	"reloader resources-to-ignore":            "secrets =",
	"reloader ignored-workload-types":         "jobs =",
	"reloader reload-on-create":               "true =",
	"reloader reload-on-delete":               "true =",
	"reloader sync-after-restart":             "true =",
	"reloader enable-csi-integration":         "true =",
	"reloader reload-strategy":                "annotations =",
	"reloader webhook-url":                    "http://x refused: no URL is called",
	"reloader is-Argo-Rollouts":               "true =",
	"reloader enable-ha":                      "true =",
	"reloader leader-election-lease-duration": "15s =",
	"reloader leader-election-renew-deadline": "10s =",
	"reloader leader-election-retry-period":   "2s =",
	"reloader log-format":                     "json =",
	"reloader log-level":                      "info =",
	"reloader enable-pprof":                   "true =",
	"reloader pprof-addr":                     ":6060 =",
	"reloader ALERT_ON_RELOAD":                "true a Notifier (from-reloader.md#alerts)",
	"reloader ALERT_SINK":                     "slack a Notifier",
	"reloader ALERT_WEBHOOK_URL":              "https://secret a Notifier",
	"reloader ALERT_ADDITIONAL_INFO":          "x no text is added",
	"reloader ALERT_WEBHOOK_PROXY":            "x a Notifier connects without a proxy",

	"rollout-operator kubernetes.namespace":                    "mimir watch mimir",
	"rollout-operator kubernetes.cluster-domain":               "example.org. --cluster-domain=example.org.",
	"rollout-operator kubernetes.api-url":                      "https://x the API server of the cluster",
	"rollout-operator kubernetes.config-file":                  "/k the API server of the cluster",
	"rollout-operator kubernetes.client-timeout":               "5m the API server limits requests",
	"rollout-operator kubernetes.client-qps":                   "5 the API server limits requests",
	"rollout-operator kubernetes.client-burst":                 "10 the API server limits requests",
	"rollout-operator pods.client-timeout":                     "9s --pod-timeout=9s",
	"rollout-operator reconcile.interval":                      "5s the next zone starts",
	"rollout-operator log.format":                              "json --log-format",
	"rollout-operator log.level":                               "debug --log-level",
	"rollout-operator server.port":                             "8001 --metrics-bind-address",
	"rollout-operator server-tls.enabled":                      "true spillway install --webhooks",
	"rollout-operator server-tls.port":                         "8443 --webhook-bind-address",
	"rollout-operator server-tls.cert-file":                    "/c --webhook-cert-dir",
	"rollout-operator server-tls.key-file":                     "/k --webhook-cert-dir",
	"rollout-operator server-tls.request-timeout":              "10s the webhook configuration",
	"rollout-operator server-tls.self-signed-cert.enabled":     "true the certificate is generated",
	"rollout-operator server-tls.self-signed-cert.secret-name": "x the certificate is generated",
	"rollout-operator server-tls.self-signed-cert.dns-name":    "x --webhook-host",
	"rollout-operator server-tls.self-signed-cert.org":         "x the certificate is generated",
	"rollout-operator server-tls.self-signed-cert.expiration":  "1y the certificate is generated",
	"rollout-operator webhooks.update-ca-bundle":               "true the CA is always injected",
	"rollout-operator use-zone-tracker":                        "true the RolloutGroup has the time",
	"rollout-operator zone-tracker.config-map-name":            "x the RolloutGroup has the time",
	"rollout-operator zpdb.pod-ready-annotation-patch-timeout": "5s no Pod is annotated",
	"rollout-operator server.cluster-validation.http.*":        "true a key in the path",
	"rollout-operator OTEL_*":                                  "x traces are sent by OTLP",
	"rollout-operator JAEGER_*":                                "x OTEL_EXPORTER_OTLP_ENDPOINT",
	"rollout-operator HTTP_PROXY":                              "x Pods are called without a proxy",

	"kudo KUDO_SYNCPERIOD": "1h --sync-period=1h",
	"kudo KUDO_CERT_DIR":   "/c --webhook-cert-dir",
	"kudo ENABLE_WEBHOOKS": "true spillway install --webhooks",
	"kudo POD_NAMESPACE":   "x nothing is needed",
	"kudo SECRET_NAME":     "x nothing is needed",

	"fleeet metrics-bind-address":      ":8080 nothing is needed",
	"fleeet health-probe-bind-address": ":8081 nothing is needed",
	"fleeet leader-elect":              "true nothing is needed",
	"fleeet kubeconfig":                "/k nothing is needed",
	"fleeet zap-devel":                 "true the level debug",
	"fleeet zap-encoder":               "json console is the format text",
	"fleeet zap-log-level":             "debug panic is the level error",
	"fleeet zap-stacktrace-level":      "error no stack traces",
	"fleeet zap-time-encoding":         "iso8601 the format of times",
}

// TestEachFlagOfAFormerProgram has a row for each flag and variable. What is carried over, and what is said to be accepted, is
// parsed by the manager.
func TestEachFlagOfAFormerProgram(t *testing.T) {
	t.Parallel()
	all, rows := formers(), 0
	for i := range all {
		p := &all[i]
		for n := range p.names.Flags {
			flag := &p.names.Flags[n]
			name := p.program() + " " + flag.Name
			row, ok := flagRows[name]
			if !ok {
				t.Errorf("%s: no row says what becomes of it", name)
				continue
			}
			if p.name == p.program() {
				rows++
			}
			t.Run(p.name+" "+flag.Name, func(t *testing.T) {
				t.Parallel()
				value, want, _ := strings.Cut(row, " ")
				if want == "=" {
					want = "--" + flag.Name + "=" + value
				}
				checkFlag(t, p, flag, value, want)
			})
		}
	}
	if rows != len(flagRows) {
		t.Errorf("%d flags, and %d rows", rows, len(flagRows))
	}
}

// checkFlag compares what becomes of a flag with a row.
func checkFlag(t *testing.T, p *former, flag *vocabulary.FormerFlag, value, want string) {
	t.Helper()
	m := &migration{env: command.Environment{Lookup: func(string) (string, bool) { return "", false }}}
	name := strings.Replace(flag.Name, "*", "x", 1)
	given := []*corev1.Container{{Args: []string{"--" + name + "=" + value}}}
	if f := m.managerFlags().Lookup(name); f == nil || f.NoOptDefVal == "" {
		given = append(given, &corev1.Container{Args: []string{"-" + name, value}})
	}
	if flag.IsVariable() {
		given = []*corev1.Container{{Env: []corev1.EnvVar{{Name: strings.ToUpper(name), Value: value}}}}
	}
	for _, c := range given {
		flags, namespaces := p.flagsOf(c, m.managerFlags(), "here")
		if len(flags) != 1 || flags[0].unknown {
			t.Fatalf("%v: %+v", c.Args, flags)
		}
		got := flags[0].Instead
		switch {
		case len(namespaces) > 0:
			got = "watch " + strings.Join(namespaces, " ")
		case flags[0].Manager != "":
			got = flags[0].Manager
			if err := m.managerFlags().Parse([]string{got}); err != nil {
				t.Error(err)
			}
		}
		if !strings.HasPrefix(got, want) || want == "" {
			t.Errorf("%v: %q, want %q", c.Args, got, want)
		}
		if flags[0].Manager == "" && flags[0].Value != "" && flag.IsVariable() && len(namespaces) == 0 {
			t.Error("the value of a variable is shown, and may be a secret")
		}
	}
	if flag.IsVariable() || flag.Name == vocabulary.ReloaderWebhook {
		return
	}
	if err := m.managerFlags().Parse([]string{fmt.Sprintf("--%s=%s", name, value)}); (err == nil) != flag.Accepted {
		t.Errorf("accepted: %v, and the manager says %v", flag.Accepted, err)
	}
}

// TestAFlagThatIsNotKnown is named, with one that was meant.
func TestAFlagThatIsNotKnown(t *testing.T) {
	t.Parallel()
	m := &migration{env: command.Environment{Lookup: func(string) (string, bool) { return "", false }}}
	for _, p := range formers() {
		flags, _ := p.flagsOf(&corev1.Container{Args: []string{"--update-rat=1"}, Env: []corev1.EnvVar{{Name: "OTHER", Value: "x"}}}, m.managerFlags(), "here")
		if !slices.ContainsFunc(flags, func(g given) bool { return g.unknown && strings.Contains(g.Instead, "--update-rate") }) || len(flags) != 1 {
			t.Errorf("%s: %+v", p.name, flags)
		}
	}
}
