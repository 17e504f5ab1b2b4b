package modern

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// selector adds the selector that older versions made from the labels of the Pods.
func (o *edit) selector() {
	spec := field(o.place.node, "spec")
	if spec == nil || field(spec, "selector") != nil {
		return
	}
	template, value := pair(spec, "template")
	key, labels := pair(field(value, "metadata"), "labels")
	if !isBlock(spec) || !isBlock(labels) {
		o.manual(o.place.version, "apps/v1 needs spec.selector: add it, with matchLabels that the labels of spec.template have")
		return
	}
	from, to := o.rangeOf(key, labels)
	if o.hasActions(from, to) {
		o.manual(key, "apps/v1 needs spec.selector, and the labels of the Pods depend on actions of the template: add it, with matchLabels")
		return
	}
	column := template.Column - 1
	lines := []string{spaces(column) + "selector:", spaces(column) + "  matchLabels:"}
	lines = append(lines, o.indented(from+1, to, column+4-(labels.Column-1))...)
	o.addBefore(o.line(template), lines...)
	o.note(template, "spec.selector is added, with the labels of the Pods", false)
}

// ingress writes backends as networking.k8s.io/v1 has them.
func (o *edit) ingress() {
	spec := field(o.place.node, "spec")
	if key, backend := pair(spec, "backend"); key != nil {
		o.backend(key, backend)
		o.replace(key, "defaultBackend", "spec.backend becomes spec.defaultBackend")
	}
	rules := field(spec, "rules")
	if rules == nil {
		return
	}
	for _, rule := range rules.Content {
		paths := field(rule, "http", "paths")
		if paths == nil {
			continue
		}
		for _, path := range paths.Content {
			o.path(path)
		}
	}
}

func (o *edit) path(path *yamlv3.Node) {
	key, backend := pair(path, "backend")
	if key == nil {
		return
	}
	o.backend(key, backend)
	if field(path, "pathType") == nil && isBlock(path) {
		_, to := o.rangeOf(key, backend)
		o.addAfter(to-1, spaces(key.Column-1)+"pathType: ImplementationSpecific")
		o.note(path, "pathType is added", false)
	}
}

func (o *edit) backend(key, backend *yamlv3.Node) {
	name, service := pair(backend, "serviceName")
	number, port := pair(backend, "servicePort")
	switch {
	case name == nil && number == nil:
	case name == nil, number == nil, !isBlock(backend), o.line(name) == o.line(key), o.hasActions(o.rangeOf(key, backend)):
		o.manual(key, "write the backend as service.name and service.port")
	case strings.Contains(o.page.lines[o.line(port)], "{{"):
		o.manual(port, "write the backend as service.name and service.port.number, or service.port.name if the parameter is a name")
	default:
		column, kind := name.Column-1, "name"
		if _, err := strconv.Atoi(port.Value); err == nil && port.Style == 0 {
			kind = "number"
		}
		o.addBefore(min(o.line(name), o.line(number)),
			spaces(column)+"service:",
			spaces(column)+"  name: "+o.rest(service),
			spaces(column)+"  port:",
			spaces(column)+"    "+kind+": "+o.rest(port))
		o.remove(o.line(name), o.line(name)+1)
		o.remove(o.line(number), o.line(number)+1)
		o.note(name, "serviceName and servicePort become service", false)
	}
}

// rest is a value as it is written, with what follows it in its line.
func (o *edit) rest(value *yamlv3.Node) string {
	return strings.TrimSpace(string([]rune(o.page.lines[o.line(value)])[value.Column-1:]))
}

// disruptions refuses an empty selector, which selects all Pods in policy/v1, and none
// before.
func (o *edit) disruptions() {
	if key, selector := pair(field(o.place.node, "spec"), "selector"); key != nil && len(selector.Content) == 0 {
		o.manual(key, "an empty selector selects no Pod in policy/v1beta1, and all of the namespace in policy/v1: write the one that is meant")
	}
}

// metrics writes the targets of resources as autoscaling/v2 has them.
func (o *edit) metrics() {
	metrics := field(o.place.node, "spec", "metrics")
	if !strings.HasSuffix(o.place.version.Value, "/v2beta1") || metrics == nil {
		return
	}
	for _, metric := range metrics.Content {
		resource := field(metric, "resource")
		key, value, kind := target(resource)
		if key == nil || !isBlock(resource) {
			o.manual(metric, "write the target of the metric as autoscaling/v2 has it: target.type and its value")
			continue
		}
		column := key.Column - 1
		field := strings.ToLower(kind[:1]) + kind[1:]
		if kind == "Utilization" {
			field = "averageUtilization"
		}
		o.addBefore(o.line(key), spaces(column)+"target:", spaces(column)+"  type: "+kind, spaces(column)+"  "+field+": "+o.rest(value))
		o.remove(o.line(key), o.line(key)+1)
		o.note(key, key.Value+" becomes target", false)
	}
}

func target(resource *yamlv3.Node) (key, value *yamlv3.Node, kind string) {
	for name, kind := range map[string]string{"targetAverageUtilization": "Utilization", "targetAverageValue": "AverageValue"} {
		if key, value := pair(resource, name); key != nil && key.Line != resource.Line-1 {
			return key, value, kind
		}
	}
	return nil, nil, ""
}

func (o *edit) signer() {
	if field(o.place.node, "spec", "signerName") == nil {
		o.manual(o.place.version, "spec.signerName is missing: add the signer that is meant")
	}
}

// webhooks must say what they did not have to say before.
func (o *edit) webhooks() {
	webhooks := field(o.place.node, "webhooks")
	if webhooks == nil {
		return
	}
	for _, webhook := range webhooks.Content {
		if field(webhook, "sideEffects") == nil {
			o.manual(webhook, "sideEffects is missing: add None if the webhook writes nothing, else NoneOnDryRun")
		}
		if field(webhook, "admissionReviewVersions") == nil {
			o.manual(webhook, "admissionReviewVersions is missing: add the versions that the webhook reads, [v1beta1] if it was written for admissionregistration.k8s.io/v1beta1")
		}
	}
}
