package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/expression"
)

// defaultCondition is that of an HTTPGate without one.
const defaultCondition = "status == 200"

// httpVariables are those of the expressions of an HTTPGate.
func httpVariables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("status", cel.IntType), cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("json", cel.DynType),
	}
}

// httpExpressions are the condition, and the value if there is one.
func httpExpressions(g *v1alpha1.HTTPGate) (condition, value *expression.Expression, err error) {
	text := g.Condition
	if text == "" {
		text = defaultCondition
	}
	if condition, err = expression.Compile(text, cel.BoolType, httpVariables()...); err != nil {
		return nil, nil, fmt.Errorf("condition: %w", err)
	}
	if g.Value == "" {
		return condition, nil, nil
	}
	if value, err = expression.Compile(g.Value, nil, httpVariables()...); err != nil {
		return nil, nil, fmt.Errorf("value: %w", err)
	}
	return condition, value, nil
}

func (a *asker) http(ctx context.Context, g *v1alpha1.HTTPGate) (answer, error) {
	condition, value, err := httpExpressions(g)
	if err != nil {
		return answer{}, err
	}
	variables, err := a.send(ctx, g)
	if err != nil {
		return answer{}, err
	}
	status := variables["status"]
	if status == http.StatusNoContent {
		return answer{v1alpha1.GateNoData, "status 204"}, nil
	}
	success, err := condition.IsTrue(ctx, variables)
	if err != nil {
		return answer{}, fmt.Errorf("status %d: %w", status, err)
	}
	said := fmt.Sprintf("status %d", status)
	if value != nil {
		text, err := value.Text(ctx, variables)
		if err != nil {
			return answer{}, err
		}
		said += ", value " + text
	}
	return answer{resultOf(success), said}, nil
}

// send sends the request, and returns what expressions know of the response.
func (a *asker) send(ctx context.Context, g *v1alpha1.HTTPGate) (map[string]any, error) {
	req, client, err := a.request(ctx, g)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // describe does
	}
	defer func() { _ = res.Body.Close() }() // it was read, or it is too long
	if err := sourceError(res); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err //nolint:wrapcheck // describe does
	}
	var decoded any
	if json.Unmarshal(raw, &decoded) != nil {
		decoded = nil
	}
	return map[string]any{"status": res.StatusCode, "headers": lowered(res.Header), "json": decoded}, nil
}

func (a *asker) request(ctx context.Context, g *v1alpha1.HTTPGate) (*http.Request, *http.Client, error) {
	u, err := a.filled(g.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	a.sent = methodOf(g) + " " + u.String()
	content, err := a.Labels.fill(g.Body, func(value string) string { return value })
	if err != nil {
		return nil, nil, fmt.Errorf("body: %w", err)
	}
	client, err := a.client(u.Hostname())
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, methodOf(g), u.String(), strings.NewReader(content))
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	for _, h := range g.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	return req, client, nil
}
