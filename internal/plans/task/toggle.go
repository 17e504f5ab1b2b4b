package task

import "strconv"

// toggleTask applies its objects if a parameter is true, and deletes them otherwise.
type toggleTask struct{}

func (toggleTask) assess(w *work) Finding {
	value, ok := w.Values[w.spec.Parameter]
	if !ok {
		return fatal("task %s: OperatorVersion %s has no parameter %s", w.name, w.Execution.Spec.OperatorVersion.Name, w.spec.Parameter)
	}
	s, _ := value.(string)
	on, err := strconv.ParseBool(s)
	switch {
	case err != nil:
		return fatal("task %s: parameter %s must be true or false", w.name, w.spec.Parameter)
	case on:
		return applyTask{}.assess(w)
	default:
		return deleteTask{}.assess(w)
	}
}
