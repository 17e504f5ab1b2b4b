// Command monitoring writes the dashboards into monitoring/dashboards of the folder that it
// runs in, which must be the root of the module. test/monitoring tests them, and the alerts
// and runbooks, which are written by hand.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write(filepath.Join("monitoring", "dashboards")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// write writes all dashboards into a folder that it empties first.
func write(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove %s: %w", folder, err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make %s: %w", folder, err)
	}
	for _, d := range dashboards() {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(d.grafana()); err != nil {
			return fmt.Errorf("marshal dashboard %s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, d.name+".json"), b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("write dashboard %s: %w", d.name, err)
		}
	}
	return nil
}
