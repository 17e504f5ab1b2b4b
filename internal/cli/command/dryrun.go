package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// DryRun is the value of --dry-run, with the words that kubectl has. The zero value is none.
type DryRun struct {
	mode dryRunMode
}

// dryRunMode implements [pflag.Value].
type dryRunMode string

// The words of --dry-run.
const (
	dryRunNone   dryRunMode = "none"
	dryRunClient dryRunMode = "client"
	dryRunServer dryRunMode = "server"
)

// AddFlag adds the flag.
func (d *DryRun) AddFlag(flags *pflag.FlagSet) {
	d.AddFlagWith(flags, "client: write nothing, and print what would be written; server: also send the writes, which the API server checks and does not store")
}

// AddFlagWith adds the flag to a command that does something else for it than others do.
func (d *DryRun) AddFlagWith(flags *pflag.FlagSet, usage string) {
	d.mode = dryRunNone
	flags.Var(&d.mode, "dry-run", usage)
}

// String implements [pflag.Value].
func (m *dryRunMode) String() string { return string(*m) }

// Type implements [pflag.Value].
func (m *dryRunMode) Type() string { return "string" }

// Set implements [pflag.Value].
func (m *dryRunMode) Set(word string) error {
	if !slices.Contains([]dryRunMode{dryRunNone, dryRunClient, dryRunServer}, dryRunMode(word)) {
		return formError(fmt.Sprintf("%q is not known; use %s", word, m.choices()))
	}
	*m = dryRunMode(word)
	return nil
}

// choices are the words, as a sentence has them.
func (m *dryRunMode) choices() string { return "none, client or server" }

// On is true if nothing is stored.
func (d *DryRun) On() bool { return d.IsClient() || d.mode == dryRunServer }

// IsClient is true if no write is sent.
func (d *DryRun) IsClient() bool { return d.mode == dryRunClient }

// Note follows what is said to be done: that it was not.
func (d *DryRun) Note() string {
	if !d.On() {
		return ""
	}
	return fmt.Sprintf(" (%s dry run)", d.mode)
}

// Client returns a client whose writes are sent, are sent to be checked, or are not sent. An
// object that is not sent stays as it is given. Reads are those of the cluster.
func (d *DryRun) Client(c client.WithWatch) client.WithWatch {
	switch d.mode {
	case dryRunClient:
		return interceptor.NewClient(c, unsent())
	case dryRunServer:
		return unstored{Client: client.NewDryRunClient(c), cluster: c}
	default:
		return c
	}
}

// unsent are writes that do nothing.
func unsent() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if _, asks := obj.(*authenticationv1.SelfSubjectReview); asks { // nothing is stored
				return c.Create(ctx, obj, o...)
			}
			return nil
		},
		Update:      func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return nil },
		Delete:      func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil },
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error { return nil },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return nil
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return nil
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return nil
		},
	}
}

// unstored is a client whose writes the API server checks and does not store.
type unstored struct {
	client.Client // of the dry run

	cluster client.WithWatch
}

// Watch implements [client.WithWatch].
func (u unstored) Watch(ctx context.Context, list client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
	return u.cluster.Watch(ctx, list, o...) //nolint:wrapcheck // it is the same client
}
