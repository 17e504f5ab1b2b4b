package model

import (
	"k8s.io/apimachinery/pkg/types"

	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// Budget is what matters of a ClusterBudget.
type Budget struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Spec            spillway.ClusterBudgetSpec
	// Modules are what modules have noted in it.
	Modules []spillway.BudgetModule
}

// Noted is what a module has noted in the budget, nil if nothing.
func (b *Budget) Noted(kind, name string) *spillway.BudgetModule {
	for i := range b.Modules {
		if m := &b.Modules[i]; m.Kind == kind && m.Name == name {
			return m
		}
	}
	return nil
}

// Sharer is a module of either kind that may share a budget: one that the hub rolls out.
type Sharer struct {
	Kind, Name string
	Labels     map[string]string
}
