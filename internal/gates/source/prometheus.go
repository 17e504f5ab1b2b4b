package source

import (
	"context"
	"fmt"
	"math"
	"net/url"

	"github.com/google/cel-go/cel"
	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/expression"
)

// prometheusCondition compiles the condition of a PrometheusGate.
func prometheusCondition(g *v1alpha1.PrometheusGate) (*expression.Expression, error) {
	variables := []cel.EnvOption{cel.Variable("value", cel.DoubleType)}
	if g.Baseline != "" {
		variables = append(variables, cel.Variable("baseline", cel.DoubleType))
	}
	condition, err := expression.Compile(g.Condition, cel.BoolType, variables...)
	if err != nil {
		return nil, fmt.Errorf("condition: %w", err)
	}
	return condition, nil
}

func (a *asker) prometheus(ctx context.Context, g *v1alpha1.PrometheusGate) (answer, error) {
	condition, err := prometheusCondition(g)
	if err != nil {
		return answer{}, err
	}
	server, err := a.server(g)
	if err != nil {
		return answer{}, err
	}
	variables, said := map[string]any{}, ""
	for _, q := range []struct{ name, query string }{{"value", g.Query}, {"baseline", g.Baseline}} {
		if q.query == "" {
			continue
		}
		value, found, err := a.query(ctx, server, q.query)
		if err != nil {
			return answer{}, fmt.Errorf("%s: %w", q.name, err)
		}
		if !found {
			return answer{v1alpha1.GateNoData, "no data for the " + q.name}, nil
		}
		variables[q.name] = value
		if said != "" {
			said += ", "
		}
		said += q.name + " " + expression.Number(value)
	}
	success, err := condition.IsTrue(ctx, variables)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", said, err)
	}
	return answer{resultOf(success), said}, nil
}

func (a *asker) server(g *v1alpha1.PrometheusGate) (prometheus.API, error) {
	u, err := a.filled(g.Address)
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	client, err := a.client(u.Hostname())
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(api.Config{Address: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), Client: client})
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	return prometheus.NewAPI(c), nil
}

// query evaluates a query. It is not found if there is no data.
func (a *asker) query(ctx context.Context, server prometheus.API, query string) (value float64, found bool, err error) {
	filled, err := a.Labels.fill(query, func(value string) string { return value })
	if err != nil {
		return 0, false, err
	}
	if a.sent != "" {
		a.sent += "; "
	}
	a.sent += filled
	result, _, _, err := server.Query(ctx, filled, a.now)
	if err != nil {
		return 0, false, err //nolint:wrapcheck // describe does
	}
	switch r := result.(type) {
	case *model.Scalar:
		value, found = float64(r.Value), true
	case model.Vector:
		if len(r) > 1 {
			return 0, false, fmt.Errorf("the query has %d series as its result; aggregate them to one, such as by sum()", len(r))
		}
		for _, sample := range r {
			value, found = float64(sample.Value), sample.Histogram == nil
		}
	default:
		return 0, false, fmt.Errorf("the result of the query is a %s, and must be a number", result.Type())
	}
	return value, found && !math.IsNaN(value), nil
}
