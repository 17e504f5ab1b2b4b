package plans

import "strconv"

// toggleTask applies its objects if a parameter is true, and else deletes them.
type toggleTask struct{}

func (toggleTask) look(w *work) finding {
	value, ok := w.run.values[w.spec.Parameter]
	if !ok {
		return fatal("task %s: OperatorVersion %s has no parameter %s", w.name, w.run.execution.Spec.OperatorVersion.Name, w.spec.Parameter)
	}
	s, _ := value.(string)
	on, err := strconv.ParseBool(s)
	switch {
	case err != nil:
		return fatal("task %s: parameter %s has to be true or false", w.name, w.spec.Parameter)
	case on:
		return applyTask{}.look(w)
	default:
		return deleteTask{}.look(w)
	}
}
