package measured

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// listensAt is what Prometheus says once it answers.
var listensAt = regexp.MustCompile(`msg="Listening on" .*address=(\S+)`)

// configuration of Prometheus, which scrapes each second so that a test need not take minutes.
const configuration = `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: spillway, static_configs: [{targets: [%q]}]}]
`

// Prometheus is a real one. It scrapes a service whose errors are counted by stage, and the
// metrics of the managers in this process.
type Prometheus struct {
	// URL is its address.
	URL string

	t     testing.TB
	api   promv1.API
	began time.Time

	mu     sync.Mutex
	rising map[string]func() bool
	errors map[string]float64
}

// errorsOf is the counter of the service's errors.
var errorsOf = prometheus.NewDesc("errors_total", "The errors of a service, by stage.", []string{"stage"}, nil)

// NewPrometheus starts the program that $PROMETHEUS names, and ends it with the test. A stage has
// ten more errors at each scrape while what it is given with says so.
func NewPrometheus(t testing.TB, rising map[string]func() bool) *Prometheus {
	t.Helper()
	p := &Prometheus{t: t, began: time.Now(), rising: rising, errors: map[string]float64{}}
	service := prometheus.NewRegistry()
	service.MustRegister(p)
	scraped := httptest.NewServer(promhttp.HandlerFor(prometheus.Gatherers{metrics.Registry, service}, promhttp.HandlerOpts{}))
	t.Cleanup(scraped.Close)
	p.start(fmt.Appendf(nil, configuration, scraped.Listener.Addr()))
	return p
}

func (p *Prometheus) start(configuration []byte) {
	p.t.Helper()
	program, folder, said := os.Getenv("PROMETHEUS"), p.t.TempDir(), &testenv.Buffer{}
	if program == "" {
		p.t.Fatal("PROMETHEUS names no program; run make monitoring-check, which builds it")
	}
	config := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(config, configuration, 0o600); err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testenv.Eventually(p.t, func(context.Context) error {
		m := listensAt.FindStringSubmatch(said.String())
		if m == nil {
			return errors.New("Prometheus does not answer: " + said.String())
		}
		p.URL = "http://" + m[1]
		return nil
	})
	c, err := api.NewClient(api.Config{Address: p.URL})
	if err != nil {
		p.t.Fatal(err)
	}
	p.api = promv1.NewAPI(c)
}

// Describe implements [prometheus.Collector].
func (p *Prometheus) Describe(descs chan<- *prometheus.Desc) { descs <- errorsOf }

// Collect implements [prometheus.Collector].
func (p *Prometheus) Collect(found chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for stage, rises := range p.rising {
		if rises() {
			p.errors[stage] += 10
		}
		found <- prometheus.MustNewConstMetric(errorsOf, prometheus.CounterValue, p.errors[stage], stage)
	}
}

// Template is a GateTemplate that asks for the errors of a stage in the last seconds, after as
// many seconds and twice.
func (p *Prometheus) Template(namespace, name string) *v1alpha1.GateTemplate {
	count := int32(2)
	return &v1alpha1.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GateTemplateSpec{
			InitialDelay: &metav1.Duration{Duration: window}, Interval: &metav1.Duration{Duration: window}, Count: &count,
			Prometheus: &v1alpha1.PrometheusGate{Address: p.URL, Query: `sum(rate(errors_total{stage="{{ .stage }}"}[5s]))`, Condition: "value < 0.01"},
		},
	}
}

// Has waits until a query gives something.
func (p *Prometheus) Has(query string) {
	p.t.Helper()
	p.vector(query)
}

// Shows waits until the queries of all panels of a dashboard, in a file, have given something
// since Prometheus was started, except these, which are about what the test does not cause.
func (p *Prometheus) Shows(dashboard string, except ...string) {
	p.t.Helper()
	p.show(dashboard, func(title string) bool { return !slices.Contains(except, title) })
}

// ShowsPanel waits for one panel of a dashboard.
func (p *Prometheus) ShowsPanel(dashboard, title string) {
	p.t.Helper()
	p.show(dashboard, func(t string) bool { return t == title })
}

func (p *Prometheus) show(dashboard string, wanted func(title string) bool) {
	p.t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		p.t.Fatal(err)
	}
	var d struct {
		Panels []panel `json:"panels"`
	}
	err = json.Unmarshal(text, &d)
	d.Panels = slices.DeleteFunc(d.Panels, func(panel panel) bool { return !wanted(panel.Title) })
	if err != nil || len(d.Panels) == 0 {
		p.t.Fatalf("%s: %d panels: %v", dashboard, len(d.Panels), err)
	}
	testenv.Eventually(p.t, func(ctx context.Context) error {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				if !p.gave(ctx, target.Expr) {
					return fmt.Errorf("panel %q of %s is empty: %s", panel.Title, dashboard, target.Expr)
				}
			}
		}
		return nil
	})
}

// panel is one of a dashboard of Grafana.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// gave tells whether a query has given a number at any second of the test.
func (p *Prometheus) gave(ctx context.Context, query string) bool {
	p.t.Helper()
	found, _, _, err := p.api.QueryRange(ctx, query, promv1.Range{Start: p.began, End: time.Now(), Step: time.Second})
	if ctx.Err() != nil {
		return false // it is said which panel is empty
	}
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	m, _ := found.(model.Matrix)
	for _, series := range m {
		for _, sample := range series.Values {
			if !math.IsNaN(float64(sample.Value)) {
				return true
			}
		}
	}
	return false
}
