package schemas

import (
	"path/filepath"
	"testing"
)

// What lacks a field, has another one, or one of another type, is not as published.
func TestCheck(t *testing.T) {
	for answer, isRight := range map[string]bool{
		`[{"kind": "Deployment", "name": "web", "ring": "config", "phase": "Complete", "since": "2026-05-04T12:00:00Z"}]`: true,
		`[]`:   true,
		`{}`:   false,
		`[{}]`: false,
		`[{"kind": "Deployment", "name": "web", "ring": "config", "phase": 1}]`:                            false,
		`[{"kind": "Deployment", "name": "web", "ring": "config", "phase": "Complete", "since": "today"}]`: false,
		`[{"kind": "Deployment", "name": "web", "ring": "config", "phase": "Complete", "new": 1}]`:         false,
		`nonsense`: false,
	} {
		if err := Check(filepath.Join("..", "..", "..", "docs", "schemas"), "rollouts", []byte(answer)); (err == nil) != isRight {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
