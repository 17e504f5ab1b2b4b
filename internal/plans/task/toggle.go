package task

import (
	"fmt"
	"strconv"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// toggleTask applies its objects if a parameter is true, and deletes them otherwise.
type toggleTask struct{}

func (toggleTask) assess(w *work) Finding {
	switch deletes, err := w.deletes(v1beta1.ToggleTask); {
	case err != nil:
		return fatal("%s", err)
	case deletes:
		return deleteTask{}.assess(w)
	default:
		return applyTask{}.assess(w)
	}
}

// deletes reports whether a task of a kind deletes its objects, as a Toggle does whose parameter
// is false.
func (w *work) deletes(kind string) (bool, error) {
	if kind != v1beta1.ToggleTask {
		return kind == v1beta1.DeleteTask, nil
	}
	value, ok := w.Values[w.spec.Parameter]
	if !ok {
		return false, fmt.Errorf("task %s: OperatorVersion %s has no parameter %s", w.name, w.Execution.Spec.OperatorVersion.Name, w.spec.Parameter)
	}
	s, _ := value.(string)
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("task %s: parameter %s must be true or false", w.name, w.spec.Parameter)
	}
	return !on, nil
}
