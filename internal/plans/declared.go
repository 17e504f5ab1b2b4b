package plans

import "github.com/spillway-dev/spillway/internal/admission"

// Declared is what the ring wants the cluster to have: the guard. It has no
// webhook; what needs the OperatorVersion to be judged is judged by [Choose].
func Declared() admission.Declared { return admission.Declared{Policies: Policies()} }
