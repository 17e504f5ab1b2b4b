package main

// dashboard is one dashboard.
type dashboard struct {
	name, title string
	panels      []panel
}

// panel is one graph.
type panel struct {
	title, unit string
	queries     []query
}

// query is a PromQL query, and how its series are called: "{{ring}} {{reason}}".
type query struct{ expr, legend string }

// The units of Grafana.
const (
	count   = "short"
	seconds = "s"
	perSec  = "reqps"
	inBytes = "bytes"
)

// The grid of Grafana has 24 columns; panels stand two in a row.
const (
	panelWidth  = 12
	panelHeight = 8
)

// grafana is the dashboard as Grafana imports it.
func (d *dashboard) grafana() map[string]any {
	panels := make([]any, 0, len(d.panels))
	for i := range d.panels {
		panels = append(panels, d.panels[i].grafana(i))
	}
	return map[string]any{
		"uid": "spillway-" + d.name, "title": d.title, "tags": []string{"spillway"}, "schemaVersion": 39, "editable": true,
		"time": map[string]any{"from": "now-6h", "to": "now"}, "refresh": "30s", "panels": panels,
		"templating": map[string]any{"list": []any{map[string]any{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
		"links":      []any{map[string]any{"title": "Spillway", "type": "dashboards", "tags": []string{"spillway"}, "asDropdown": true}},
	}
}

func (p *panel) grafana(i int) map[string]any {
	source := map[string]any{"type": "prometheus", "uid": "${datasource}"}
	targets := make([]any, 0, len(p.queries))
	for n, q := range p.queries {
		targets = append(targets, map[string]any{"refId": string(rune('A' + n)), "datasource": source, "expr": q.expr, "legendFormat": q.legend})
	}
	return map[string]any{
		"id": i + 1, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
		"gridPos":     map[string]any{"x": i % 2 * panelWidth, "y": i / 2 * panelHeight, "w": panelWidth, "h": panelHeight},
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
		"options":     map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom"}, "tooltip": map[string]any{"mode": "multi"}},
	}
}
