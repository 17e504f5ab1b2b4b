package certificate

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// clockTimeout bounds the question for the time.
const clockTimeout = 10 * time.Second

// serverTime asks an API server for the time, which is in the header of each answer.
func serverTime(cfg *rest.Config, c *http.Client) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, clockTimeout)
		defer cancel()
		base, _, err := rest.DefaultServerUrlFor(cfg)
		if err != nil {
			return time.Time{}, fmt.Errorf("address of the API server: %w", err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
		if err != nil {
			return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
		}
		res, err := c.Do(req)
		if err != nil {
			return time.Time{}, fmt.Errorf("ask the API server for the time: %w", err)
		}
		_ = res.Body.Close()
		at, err := http.ParseTime(res.Header.Get("Date"))
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the API server: %w", err)
		}
		return at, nil
	}
}

// isWrong is true of a clock that differs from that of the API server by more than a
// certificate tolerates.
func isWrong(ours, theirs time.Time) bool { return ours.Sub(theirs).Abs() > skew }
