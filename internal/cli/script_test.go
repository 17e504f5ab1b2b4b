package cli_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// apply FILE: apply the objects of a file in the script's namespace, with $NS replaced.
func apply(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: apply FILE")
	}
	applyIn(ts, ts.Getenv("NS"), strings.ReplaceAll(ts.ReadFile(args[0]), "$NS", ts.Getenv("NS")))
}

// apply-cluster FILE: apply objects that are in no namespace, with $NS replaced.
func applyCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: apply-cluster FILE")
	}
	applyIn(ts, "", strings.ReplaceAll(ts.ReadFile(args[0]), "$NS", ts.Getenv("NS")))
}

// delete FILE: delete the objects of a file, and wait until they are gone.
func remove(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: delete FILE")
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	ts.Check(err)
	for doc := range strings.SplitSeq(ts.ReadFile(args[0]), "---\n") {
		obj := &unstructured.Unstructured{}
		ts.Check(yaml.Unmarshal([]byte(doc), &obj.Object))
		obj.SetNamespace(ts.Getenv("NS"))
		ts.Check(client.IgnoreNotFound(c.Delete(context.Background(), obj)))
		awaitGone(ts, c, obj)
	}
}

func awaitGone(ts *testscript.TestScript, c client.Client, obj *unstructured.Unstructured) {
	ts.Check(testenv.Until(context.Background(), func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return fmt.Errorf("%s %s still exists", obj.GetKind(), obj.GetName())
		}
		return client.IgnoreNotFound(err)
	}))
}

func applyIn(ts *testscript.TestScript, namespace, docs string) {
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	ts.Check(err)
	for doc := range strings.SplitSeq(docs, "---\n") {
		obj := &unstructured.Unstructured{}
		ts.Check(yaml.Unmarshal([]byte(doc), &obj.Object))
		obj.SetNamespace(cmp.Or(namespace, obj.GetNamespace()))
		ts.Check(c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("script"), client.ForceOwnership))
	}
}

// kubeconfig-as USER FILE: write a kubeconfig that acts as a user without permissions.
func kubeconfigAs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: kubeconfig-as USER FILE")
	}
	k, err := clientcmd.LoadFromFile(testenv.Shared().Kubeconfig())
	ts.Check(err)
	for _, user := range k.AuthInfos {
		user.Impersonate = args[0]
	}
	ts.Check(clientcmd.WriteToFile(*k, ts.MkAbs(args[1])))
}
