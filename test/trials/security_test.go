package trials_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"debug/elf"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func securityTrials() []trial {
	return []trial{
		{point: "security: long values", promise: "values as long as the API server takes them are quoted in part", try: tryLongValues},
		{point: "security: the identity", promise: "the manager's service account can run no image of its own, and delete no Pod that no ring deletes", try: tryIdentity},
		{point: "security: memory", promise: "the manager keeps no value of a Secret or ConfigMap in memory", brief: true, try: tryMemory},
		{point: "security: names", promise: "webhook configurations are granted by name", brief: true, try: tryNames},
		{point: "security: the fleet", promise: "a kubeconfig leads the hub neither to its own machine nor to Services", without: "it needs a server there that must not be reached; internal/fleet/cluster"},
		{point: "security: one file", promise: "the binary is one static file", brief: true, try: tryStatic},
	}
}

func tryLongValues(w *world) {
	w.manage()
	long := strings.Repeat("x", 200<<10)
	web := deployment("web", "app", "spillway.dev/priority", long)
	w.apply(configMap("app", "1"), web, zone("zone-a", "1", 0, "", "rollout-max-unavailable", long))
	w.hashed(web, "")
	said := w.field(web, has("must be an integer"), "metadata", "annotations", "spillway.dev/config-status") +
		w.field(rolloutGroup, has("must be a number"), "status", "waitingFor")
	if n := len(said); n > 8<<10 {
		w.t.Errorf("%d bytes are said", n)
	}
	if n := len(w.manager.said.String()); n > 128<<10 {
		w.t.Errorf("the log has %d bytes", n)
	}
}

// tryIdentity installs everything but the manager itself, for one namespace.
func tryIdentity(w *world) {
	objects, err := exported("--namespace="+w.namespace, "--watch-namespaces="+w.namespace, "--rings=config,zones", "--webhooks=false")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, obj := range objects {
		switch obj.GetKind() {
		case "CustomResourceDefinition", "Namespace", "Deployment":
			continue
		}
		if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), obj) })
	}
	w.apply(configMap("app", "1"), deployment("web", "app"),
		`{apiVersion: v1, kind: Pod, metadata: {name: alone}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "`+image()+`"}]}}`)
	cfg := testenv.Shared().Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + w.namespace + ":spillway"}
	thief, err := client.New(cfg, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	web := w.object(deployment("web", "app"))
	patch := func(text string) error {
		return thief.Patch(w.t.Context(), &unstructured.Unstructured{Object: web.DeepCopy().Object}, client.RawPatch(types.StrategicMergePatchType, []byte(text)), client.DryRunAll)
	}
	for what, try := range map[string]func() error{
		"run an image": func() error {
			return patch(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}`)
		},
		"use a host's network": func() error { return patch(`{"spec":{"template":{"spec":{"hostNetwork":true}}}}`) },
		"delete a Pod": func() error {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = w.namespace, "alone"
			return thief.Delete(w.t.Context(), pod, client.DryRunAll)
		},
	} {
		w.eventually(func(context.Context) error { // once the policies are known
			if err := try(); err == nil || !strings.Contains(err.Error(), "the manager of Spillway may") {
				return errors.Join(fmt.Errorf("it may %s", what), err)
			}
			return nil
		})
	}
	if err := patch(`{"spec":{"template":{"metadata":{"annotations":{"` + hash + `":"1"}}}}}`); err != nil {
		w.t.Errorf("it may not write a hash: %v", err)
	}
}

func tryNames(w *world) {
	objects, err := exported()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, obj := range objects {
		rules, _, _ := unstructured.NestedSlice(obj.Object, "rules")
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			lists := fmt.Sprint(rule["verbs"]) == "[list]" // to find those that are left out
			if strings.Contains(fmt.Sprint(rule["resources"]), "webhookconfigurations") && rule["resourceNames"] == nil && !lists {
				w.t.Errorf("%s %s grants all: %v", obj.GetKind(), obj.GetName(), rule)
			}
		}
	}
}

func tryStatic(w *world) {
	path, err := filepath.EvalSymlinks(program().Path)
	if err != nil || os.Getenv("BINARY") == "" {
		w.result = "not tried: no BINARY is named; make build checks its own"
		return
	}
	if runtime.GOOS != "linux" {
		w.result = "not tried: only files of Linux can be read"
		return
	}
	file, err := elf.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if needs, err := file.ImportedLibraries(); err != nil || len(needs) > 0 {
		w.t.Errorf("it needs %v (%v)", needs, err)
	}
}

// tryMemory has the runtime overwrite what it frees, so that what is found in memory is kept.
// What buffers of connections hold is overwritten by what comes later: large objects of both
// kinds that no workload uses, so that the manager does not read them.
func tryMemory(w *world) {
	if runtime.GOOS != "linux" {
		w.result = "not tried: the memory of a process can be read only on Linux"
		return
	}
	values := map[string]string{"used": random(w), "unused": random(w), "config": random(w)}
	for _, name := range []string{"used", "unused"} {
		w.apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {password: %s}}`, name, values[name]))
	}
	web := strings.Replace(deployment("web", "config"), "envFrom: [", "envFrom: [{secretRef: {name: used}}, ", 1)
	w.apply(configMap("config", values["config"]), web)
	w.env = []string{"GODEBUG=clobberfree=1", "GOGC=10"}
	w.manage()
	w.hashed(web, "")
	w.eventually(func(context.Context) error {
		noise := strings.Repeat(random(w), 5_000)
		w.apply(configMap("noise", noise), fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: noise}, stringData: {a: %s}}`, noise))
		return holdsNone(w.manager.Process.Pid, values)
	})
}

func random(w *world) string {
	w.t.Helper()
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		w.t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

// holdsNone is an error if the memory of a process has one of the values, as it is or as
// the API server sends it.
func holdsNone(pid int, values map[string]string) error {
	found := map[string]int{}
	err := eachPart(pid, func(part []byte) {
		for name, value := range values {
			n := bytes.Count(part, []byte(value)) + bytes.Count(part, []byte(base64.StdEncoding.EncodeToString([]byte(value))))
			if n > 0 {
				found[name] += n
			}
		}
	})
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("in memory are values: %v", found)
	}
	return err
}

// eachPart reads what a process may write to.
func eachPart(pid int, visit func([]byte)) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return fmt.Errorf("read the parts of the memory: %w", err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return fmt.Errorf("open the memory: %w", err)
	}
	defer func() { _ = memory.Close() }()
	read := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil {
			return fmt.Errorf("part %q: %w", line, err)
		}
		if !strings.HasPrefix(mode, "rw") {
			continue
		}
		part := make([]byte, to-from)
		if n, err := memory.ReadAt(part, int64(from)); err == nil {
			visit(part)
			read += n
		}
	}
	if read == 0 {
		return errors.New("no memory could be read")
	}
	return nil
}
