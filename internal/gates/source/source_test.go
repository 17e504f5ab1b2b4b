package source_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/measure"
	"github.com/spillway-dev/spillway/internal/gates/source"
	"github.com/spillway-dev/spillway/internal/outbound"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// labels are those of a gate between two zones.
func labels() source.Labels {
	return source.Labels{"namespace": "shop", "group": "ingester", "name": "ingester", "zone": "ingester-a", "stage": "ingester-a", "revision": "v2", "gate": "errors", "kind": "RolloutGroup"}
}

// question is what a template asks, given as YAML, with URL in place of the server's.
func question(t *testing.T, url, spec string) *source.Question {
	t.Helper()
	template := &v1alpha1.GateTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "URL", url)), template); err != nil {
		t.Fatal(spec, err)
	}
	return &source.Question{Namespace: "shop", Template: template, Labels: labels()}
}

func loopback(t *testing.T) outbound.Network {
	t.Helper()
	hosts, err := outbound.ParseHosts([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return outbound.Network{Hosts: hosts}
}

// said is what a measurement says.
func said(m measure.Sample) string { return fmt.Sprintf("%s: %s", m.Result, m.Value) }

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// TestHTTP checks what responses and conditions come to.
func TestHTTP(t *testing.T) {
	for name, test := range map[string]struct {
		status           int
		body, gate, want string
	}{
		"200 by default":                  {200, "", ``, "Success: status 200"},
		"404 by default":                  {404, "", ``, "Failure: status 404"},
		"204 is no data":                  {204, "", ``, "NoData: status 204"},
		"5xx is an error":                 {503, "", `condition: "true"`, "Error: status 503"},
		"401 is an error":                 {401, "", `condition: "true"`, "Error: status 401"},
		"429 is an error":                 {429, "", `condition: "true"`, "Error: status 429"},
		"JSON":                            {200, `{"errors": 0.5}`, `condition: json.errors < 1, value: json.errors`, "Success: status 200, value 0.5"},
		"JSON, too many":                  {200, `{"errors": 2}`, `condition: json.errors < 1, value: json.errors`, "Failure: status 200, value 2"},
		"a list of JSON":                  {200, `[{"ok": true}, {"ok": false}]`, `condition: "json.all(x, x.ok)"`, "Failure: status 200"},
		"headers":                         {200, "", `condition: "headers['x-state'] == 'fine'"`, "Success: status 200"},
		"no JSON":                         {200, `<html>`, `condition: json.errors < 1`, "Error: status 200: condition: no such key: errors"},
		"no JSON, and it is asked":        {200, `<html>`, `condition: json == null`, "Success: status 200"},
		"a key that is missing":           {200, `{}`, `condition: json.errors < 1`, "Error: status 200: condition: no such key: errors"},
		"the wrong type":                  {200, `{"errors": "many"}`, `condition: json.errors < 1`, "Error: status 200: condition: no such overload"},
		"no condition":                    {200, `{"errors": 1}`, `condition: json.errors`, "Error: status 200: condition: it is a double, and must be true or false"},
		"a value that is too much":        {200, `{"a": {}}`, `value: json.a`, "Error: value: it is neither a number, a string, nor true or false"},
		"a condition that is not valid":   {200, "", `condition: "status =="`, `Error: condition: "status ==": Syntax error: mismatched input '<EOF>' expecting`},
		"a variable that there is not":    {200, "", `condition: state == 1`, `Error: condition: "state == 1": undeclared reference to 'state'`},
		"a condition that is a number":    {200, "", `condition: status`, `Error: condition: "status" has the type int, and must have the type bool`},
		"a condition that costs too much": {200, "[" + strings.Repeat("1,", 2000) + "1]", `condition: "json.all(x, json.all(y, json.all(z, x + y + z > 0.0)))"`, "Error: status 200: condition: it costs too much to evaluate"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-State", "fine")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			got := said(source.Ask(t.Context(), loopback(t), question(t, url, "http: {url: URL, "+test.gate+"}"), noon))
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// TestHTTPRequest checks what is sent, with the labels.
func TestHTTPRequest(t *testing.T) {
	got := ""
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Team"), raw)
	})
	q := question(t, url, `http: {url: "URL/{{ .namespace }}/{{.zone}}?r={{ .revision }}", method: POST, body: '{"group": "{{ .group }}"}', headers: [{name: X-Team, value: shop}]}`)
	q.Labels["revision"] = "secret/db@9676b5e0aa3f21c8" // as changes of config have it
	m := source.Ask(t.Context(), loopback(t), q, noon)
	if want := `POST /shop/ingester-a?r=secret%2Fdb@9676b5e0aa3f21c8 shop {"group": "ingester"}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if want := "POST " + url + "/shop/ingester-a?r=secret%2Fdb@9676b5e0aa3f21c8"; m.Sent != want || said(m) != "Success: status 200" {
		t.Errorf("%s, sent %s", said(m), m.Sent)
	}
}

// TestLabels checks which there are, and that a value cannot change what is asked.
func TestLabels(t *testing.T) {
	for text, want := range map[string]string{
		`{{ .team }}`:              `Error: url: {{ .team }} is no label; the labels are gate, group, kind, name, namespace, revision, stage, zone`,
		`{{ .zone | printf "x" }}`: `Error: url: {{ .zone | printf "x" }} is no label; the labels are gate, group, kind, name, namespace, revision, stage, zone`,
		`{{ .stage }}`:             `Error: url: {{ .stage }} has no value here, or one with characters that a query may not contain`,
	} {
		q := question(t, "http://127.0.0.1:1", "http: {url: URL/}")
		q.Template.HTTP.URL += text
		q.Labels["stage"] = `x"} or vector(1)`
		if got := said(source.Ask(t.Context(), loopback(t), q, noon)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// promQL answers as Prometheus does, and records the queries.
func promQL(t *testing.T, answers map[string]string) (url string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		*asked = append(*asked, query)
		w.Header().Set("Content-Type", "application/json")
		result, ok := answers[query]
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end of input"}`)
			return
		}
		_, _ = io.WriteString(w, `{"status":"success","data":`+result+`}`)
	}), asked
}

func vector(values ...string) string {
	series := make([]string, len(values))
	for i, value := range values {
		series[i] = fmt.Sprintf(`{"metric":{"i":"%d"},"value":[1777896000,%q]}`, i, value)
	}
	return `{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}`
}

// TestPrometheus checks what results come to.
func TestPrometheus(t *testing.T) {
	answers := map[string]string{
		"rate": vector("0.031"), "low": vector("0.004"), "none": vector(), "nan": vector("NaN"), "inf": vector("+Inf"), "two": vector("1", "2"),
		"scalar": `{"resultType":"scalar","result":[1777896000,"3"]}`, "matrix": `{"resultType":"matrix","result":[]}`, "wrong": `{"resultType":"vector","result":"x"}`,
		`sum(rate(errors{zone="ingester-a", namespace="shop"}[5m]))`: vector("0"),
	}
	for gate, want := range map[string]string{
		`query: low, condition: value < 0.01`:                           "Success: value 0.004",
		`query: rate, condition: value < 0.01`:                          "Failure: value 0.031",
		`query: rate, baseline: low, condition: value < baseline * 1.1`: "Failure: value 0.031, baseline 0.004",
		`query: low, baseline: rate, condition: value < baseline * 1.1`: "Success: value 0.004, baseline 0.031",
		`query: low, baseline: none, condition: value < baseline`:       "NoData: no data for the baseline",
		`query: scalar, condition: value == 3.0`:                        "Success: value 3",
		`query: none, condition: value < 1`:                             "NoData: no data for the value",
		`query: nan, condition: value < 1`:                              "NoData: no data for the value",
		`query: inf, condition: value < 1`:                              "Failure: value +Inf",
		`query: two, condition: value < 1`:                              "Error: value: the query has 2 series as its result; aggregate them to one, such as by sum()",
		`query: matrix, condition: value < 1`:                           "Error: value: the result of the query is a matrix, and must be a number",
		`query: "sum(", condition: value < 1`:                           "Error: value: bad_data: parse error: unexpected end of input",
		`query: wrong, condition: value < 1`:                            "Error: value: ",
		`query: low, condition: value < baseline`:                       `Error: condition: "value < baseline": undeclared reference to 'baseline'`,
		`query: low, condition: value * 2`:                              `Error: condition: "value * 2": found no matching overload for '_*_'`,
		`query: 'sum(rate(errors{zone="{{ .zone }}", namespace="{{ .namespace }}"}[5m]))', condition: value == 0.0`: "Success: value 0",
	} {
		url, asked := promQL(t, answers)
		m := source.Ask(t.Context(), loopback(t), question(t, url, "prometheus: {address: URL, "+gate+"}"), noon)
		if got := said(m); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s\nwant %s", gate, got, want)
		}
		if sent := strings.Join(*asked, "; "); sent != m.Sent && m.Result != v1alpha1.GateError {
			t.Errorf("%s: sent %q, recorded %q", gate, sent, m.Sent)
		}
	}
}

// TestHostileSources checks that no source makes a measurement last, or read without end.
func TestHostileSources(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat(" ", 4096))
			_ = http.NewResponseController(w).Flush()
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"100 MB": {func(w http.ResponseWriter, _ *http.Request) {
			chunk := strings.Repeat("x", 1<<20)
			for range 100 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, "the response is longer than 1048576 bytes"},
		"drip feeding without end": {drip, "the response is longer than 1048576 bytes"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
			<-r.Context().Done()
		}, "no answer within 15s"},
		"endless redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "it redirects (status 302), which is not followed"},
		"a redirect to the metadata service": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusMovedPermanently)
		}, "it redirects (status 301), which is not followed"},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		}, "net/http: server response headers exceeded"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(c, "220 smtp.example.com\r\n")
			_ = c.Close()
		}, "net/http: HTTP/1.x transport connection broken: malformed HTTP status code"},
	} {
		for kind, gate := range map[string]string{
			"http": "http: {url: URL, condition: 'true'}", "prometheus": "prometheus: {address: URL, query: up, condition: 'true'}",
		} {
			t.Run(name+" to "+kind, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(test.handler)
				t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
				ctx := t.Context()
				if name == "silence" { // the others end before they time out
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				got := said(source.Ask(ctx, loopback(t), question(t, server.URL, gate), noon))
				if !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, test.want) {
					t.Errorf("%s, want %s", got, test.want)
				}
			})
		}
	}
}

// TestUnreachable checks that a source that is gone is an error, and that the name of the
// cause is short.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	got := said(source.Ask(t.Context(), loopback(t), question(t, server.URL, "http: {url: URL}"), noon))
	if !strings.HasPrefix(got, "Error: dial tcp 127.0.0.1:") || !strings.HasSuffix(got, "connection refused") {
		t.Error(got)
	}
}

// TestAddresses checks that by default a gate reaches neither the manager itself, nor its
// network, by whatever name.
func TestAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:1/":          "127.0.0.1 has the address 127.0.0.1, which is not one of a network; to permit it, name the address in --gate-hosts of the manager",
		"http://localhost:1/":          "localhost has the address ",
		"http://[::1]:1/":              "::1 has the address ::1, which",
		"http://[::ffff:127.0.0.1]:1/": "has the address ",
		"http://0.0.0.0:1/":            "has the address 0.0.0.0",
		"http://169.254.169.254/":      "has the address 169.254.169.254",
		"http://[64:ff9b::a9fe:a9fe]/": "has the address 64:ff9b::a9fe:a9fe",
		"http://[64:ff9b::a00:1]/":     "has the private address 64:ff9b::a00:1",
		"http://[2002:7f00:1::]/":      "has the address 2002:7f00:1::",
		"http://[fe80::1]/":            "has the address fe80::1",
		"http://[fd00:ec2::254]/":      "has the address fd00:ec2::254",
		"http://224.0.0.1/":            "has the address 224.0.0.1",
		"http://10.96.0.1/":            "10.96.0.1 has the private address 10.96.0.1; to permit it, name the host in --gate-hosts of the manager",
		"http://[fd00::1]/":            "has the private address fd00::1",
		"http://100.64.0.1/":           "has the private address 100.64.0.1",
	} {
		got := said(source.Ask(t.Context(), outbound.Network{}, question(t, url, "http: {url: 'URL'}"), noon))
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", url, got, want)
		}
	}
}

// TestURLs checks which are refused before anything is sent.
func TestURLs(t *testing.T) {
	for _, url := range []string{"http://user:secret@127.0.0.1/", "ftp://127.0.0.1/", "http:///x", "file:///etc/passwd"} {
		got := said(source.Ask(t.Context(), loopback(t), question(t, url, "http: {url: 'URL'}"), noon))
		if !strings.Contains(got, "is not an http or https URL without user and password") {
			t.Errorf("%s: %s", url, got)
		}
	}
}

func secret(hosts string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "access", Annotations: map[string]string{"spillway.dev/gate-hosts": hosts}}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// TestCredentials checks what is sent to the host that the Secret names, and that nothing of
// it is returned, even if the source does.
func TestCredentials(t *testing.T) {
	const password = "hunter22"
	basic := base64.StdEncoding.EncodeToString([]byte("alice:" + password))
	for name, test := range map[string]struct {
		secret *corev1.Secret
		header string
		want   string
	}{
		"token":                      {secret("127.0.0.1", map[string]string{"token": password + "\n"}), "Bearer " + password, "Success: status 200, value "},
		"basic authentication":       {secret("10.0.0.0/8, 127.0.0.0/8", map[string]string{"username": "alice", "password": password}), "Basic " + basic, "Success: status 200, value "},
		"no host":                    {secret("", map[string]string{"token": password}), "", "Error: the Secret access is not for 127.0.0.1; to permit it, name the host in its annotation spillway.dev/gate-hosts"},
		"another host":               {secret("prometheus.monitoring.svc", map[string]string{"token": password}), "", "Error: the Secret access is not for 127.0.0.1; "},
		"a host that is none":        {secret("a b_c", map[string]string{"token": password}), "", `Error: the Secret access: annotation spillway.dev/gate-hosts: "b_c" is neither`},
		"a certificate that is none": {secret("127.0.0.1", map[string]string{"ca.crt": "x"}), "", "Error: the Secret access: ca.crt contains no certificate"},
		"a pair that is none":        {secret("127.0.0.1", map[string]string{"tls.crt": "x", "tls.key": password}), "", "Error: the Secret access: tls.crt and tls.key are not a pair"},
	} {
		t.Run(name, func(t *testing.T) {
			header := ""
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				header = r.Header.Get("Authorization")
				_, _ = fmt.Fprintf(w, "%q", header)
			})
			q := question(t, url, "http: {url: URL, value: json}")
			q.Secret = test.secret
			m := source.Ask(t.Context(), loopback(t), q, noon)
			if got := said(m); !strings.HasPrefix(got, test.want) || header != test.header {
				t.Errorf("%s, sent %q\nwant %s, %q", got, header, test.want, test.header)
			}
			if text := m.Value + m.Sent; strings.Contains(text, password) || strings.Contains(text, basic) {
				t.Errorf("it says %s", text)
			}
		})
	}
}

// TestTLS checks that a server is verified, by the certificate of the Secret.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	q := question(t, server.URL, "http: {url: URL}")
	if got := said(source.Ask(t.Context(), loopback(t), q, noon)); !strings.Contains(got, "certificate signed by unknown authority") {
		t.Error(got)
	}
	q.Secret = secret("127.0.0.1", map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))})
	if got := said(source.Ask(t.Context(), loopback(t), q, noon)); got != "Success: status 200" {
		t.Error(got)
	}
}

// TestQueriesAreRead: what is no PromQL is found where it is, and so is a result that is no number.
func TestQueriesAreRead(t *testing.T) {
	for query, want := range map[string]string{
		`sum(rate(errors{zone="{{ .zone }}"}[1m])) / sum(rate(requests[1m]))`: "",
		`scalar(up) # of {{ .group }}`:                                        "",
		`up{pod=~"{{ .zone }}-.*"} offset 5m`:                                 "",
		`sum(rate(errors[1m])`:                                                "1:21: parse error: unclosed left parenthesis",
		`sum(rate(errors{zone="{{ .zone }}"}[1m])) /`:                         "1:44: parse error: unexpected end of input",
		`rate(errors)`:               "expected type range vector in call to function \"rate\", got instant vector",
		`rat(errors[1m])`:            "unknown function with name \"rat\"",
		`errors[1x]`:                 "bad number or duration syntax",
		`histogram_quantile(errors)`: "expected 2 argument(s) in call to \"histogram_quantile\"",
		`errors[1m]`:                 "the result of the query is a range vector, and must be a number",
		`up{zone="{{ .cluster }}"}`:  "{{ .cluster }} is no label",
		`sum(errors) by (zone`:       "parse error",
	} {
		spec := &v1alpha1.GateTemplateSpec{Prometheus: &v1alpha1.PrometheusGate{Address: "http://prometheus:9090", Query: query, Condition: "value < 1.0"}}
		problems := source.Check(spec)
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v", query, problems)
		case want != "" && (len(problems) != 1 || problems[0].Field != "prometheus.query" || !strings.Contains(problems[0].Text, want)):
			t.Errorf("%s: %v, want %q", query, problems, want)
		}
	}
}
