package cli

import "github.com/spf13/cobra"

func newDemo(Environment) *cobra.Command { return &cobra.Command{Use: "demo"} }
