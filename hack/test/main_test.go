//go:build unix

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const log = `ok  	example.com/fast	0.102s
?   	example.com/none	[no test files]
--- FAIL: TestOne (0.10s)
    --- FAIL: TestOne/part (0.10s)
        x_test.go:3: wrong
--- FAIL: TestTwo (0.00s)
FAIL
FAIL	example.com/two	12.123s
ok  	example.com/slow	101.5s
ok  	example.com/before	(cached)
panic: test timed out after 15m0s
	running tests:
		TestLong (15m0s)
FAIL	example.com/long	900.1s
# example.com/bad
bad_test.go:1:1: expected 'package'
FAIL	example.com/bad [build failed]
FAIL
`

func TestFailures(t *testing.T) {
	want := []failure{{"example.com/bad", ""}, {"example.com/long", "TestLong"}, {"example.com/two", "TestOne"}, {"example.com/two", "TestTwo"}}
	if got := failures(log); !reflect.DeepEqual(got, want) {
		t.Errorf("failures = %v", got)
	}
}

func TestSlowest(t *testing.T) {
	want := []duration{{"example.com/long", "900.1s"}, {"example.com/slow", "101.5s"}}
	if got := slowest(log, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("slowest = %v", got)
	}
	if got := slowest(log, 10); len(got) != 4 {
		t.Errorf("slowest = %v", got)
	}
}

// module is a folder with a module of one package, whose test TestFlaky fails the first time.
func module(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"go.mod": "module example.com/m\n", "m_test.go": `package m

import (
	"os"
	"testing"
)

func TestGood(*testing.T) {}

func TestBroken(t *testing.T) { t.Error("broken") }

func TestFlaky(t *testing.T) {
	if _, err := os.Stat("known"); err != nil {
		t.Error(os.WriteFile("known", nil, 0o600), "is new")
	}
}
`} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The output is that of go test, and what each test that failed does alone. The run has failed.
func TestFlakyOrBroken(t *testing.T) {
	module(t)
	out := &testenv.Buffer{}
	r := runner{flags: []string{"-p", "1", "-timeout", "1m"}, packages: []string{"./..."}, env: os.Environ(), out: out}
	if err := r.test(t.Context()); err == nil {
		t.Error("the run has not failed")
	}
	for _, text := range []string{
		"--- FAIL: TestBroken", "FAIL\texample.com/m", "The slowest packages:\n",
		"broken: fails 5 of 5 alone: TestBroken in example.com/m\n  make stress TEST=TestBroken PKG=example.com/m\n",
		"flaky: passes 5 of 5 alone: TestFlaky in example.com/m\n",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not print %q:\n%s", text, out)
		}
	}
}

func TestStress(t *testing.T) {
	module(t)
	out := &testenv.Buffer{}
	r := runner{flags: []string{"-run", "TestFlaky"}, packages: []string{"."}, env: os.Environ(), out: out}
	if err := r.stress(t.Context(), 3); err == nil || !strings.Contains(out.String(), "is new") || !strings.HasSuffix(out.String(), "1 of 3 failed\n") {
		t.Errorf("it prints %s: %v", out, err)
	}
	if err := r.stress(t.Context(), 3); err != nil || !strings.HasSuffix(out.String(), "0 of 3 failed\n") {
		t.Errorf("it prints %s: %v", out, err)
	}
}

func TestStressOfNothing(t *testing.T) {
	module(t)
	for name, text := range map[string]string{"": "name a test", "TestNone": "no test TestNone"} {
		r := runner{flags: []string{"-run", name}, packages: []string{"."}, env: os.Environ(), out: t.Output()}
		if err := r.stress(t.Context(), 3); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A run listens where the last one did, but not where another one listens.
func TestListen(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	var addresses []string
	for range 2 {
		one, release, err := listen(t.Context(), []string{"-p", "2"})
		if err != nil {
			t.Fatal(err)
		}
		two, releaseTwo, err := listen(t.Context(), []string{"-p", "2"})
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, one.Addr().String())
		if two.Addr().String() == one.Addr().String() {
			t.Errorf("two runs listen at %s", one.Addr())
		}
		for _, f := range []func() error{one.Close, two.Close, release, releaseTwo} {
			if err := f(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Dir(two.Addr().String())); err == nil {
			t.Errorf("%s is left", filepath.Dir(two.Addr().String()))
		}
	}
	if addresses[0] != addresses[1] {
		t.Errorf("the second run listens at %s, the first at %s", addresses[1], addresses[0])
	}
}
