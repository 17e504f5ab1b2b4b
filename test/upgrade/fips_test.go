//go:build upgrade

package upgrade_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The variant with certified cryptography is a manager like the other: the API server trusts
// the certificate of its webhooks, and it rolls what is to be rolled once.
func TestFIPS(t *testing.T) {
	w, v := newWorld(t), certified(t)
	if out, err := exec.Command(v.program, "version").Output(); err != nil || !strings.Contains(string(out), "FIPS 140-3") {
		t.Fatalf("version: %s, %v", out, err)
	}
	if out, code := w.run(v, "install", "-n", w.system, "--image=example.test/spillway:fips", "--rings=config,zones,plans", "--watch-namespaces="+w.namespace); code != 0 {
		t.Fatalf("install: %s", out)
	}
	r := w.serve(v, w.newEndpoints())
	w.create()
	w.until(answered)
	rolls := w.rolls()
	w.change(1)
	w.settled(1)
	w.rolledOnce(rolls)
	r.leave()
	if out, code := w.run(v, "uninstall", "-n", w.system); code != 0 {
		t.Errorf("uninstall: %s", out)
	}
}
