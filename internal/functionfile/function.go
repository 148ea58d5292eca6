package functionfile

import (
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// functionKeys are the keys of a function.
var functionKeys = []string{
	"description", "parameters", "timeout", "queue_timeout", "total_deadline", "attempts", "backoff",
	"effects", "on_uncertain", "verify", "exec", "http",
}

func (l loader) function(at entry) (Function, error) {
	f := Function{Name: at.name}
	if f.Name == "" {
		return f, l.fault(at.key, "a function's name is empty; name it as the model calls it")
	}
	where := "function " + quoted(f.Name)
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return f, err
	}
	var run runner
	var onUncertain, verify entry
	for _, e := range entries {
		switch e.name {
		case "exec", "http":
			err = l.runner(&run, e, where)
		case "verify":
			verify = e
			var o executor.Option
			if o, err = l.verify(e, where+": verify"); err == nil {
				f.options = append(f.options, o)
			}
		case "description", "parameters", "timeout", "queue_timeout", "total_deadline", "attempts", "backoff", "effects", "on_uncertain":
			if e.name == "on_uncertain" {
				onUncertain = e
			}
			var o executor.Option
			if o, err = l.option(e, where+": "+e.name); err == nil {
				f.options = append(f.options, o)
			}
		default:
			err = l.unknownKey(e, where, functionKeys)
		}
		if err != nil {
			return f, err
		}
	}
	if onUncertain.value != nil && verify.value == nil {
		if choice, _ := l.text(onUncertain.value, where); call.OnUncertain(choice) == call.UncertainVerify {
			return f, l.fault(onUncertain.value, "%s: on_uncertain is verify, and there is no verify; add the one that finds out, or use park, fail or rerun", where)
		}
	}
	if run == (runner{}) {
		return f, l.fault(at.key, "%s has neither exec nor http; add the one that runs it", where)
	}
	f.kind, f.handler = run.kind(), run.handler()
	return f, nil
}

// runner is what a function or its verification is run by: one of the two.
type runner struct {
	exec *program
	http *endpoint
}

// runner reads exec or http into r, which must not have one yet.
func (l loader) runner(r *runner, e entry, where string) (err error) {
	if *r != (runner{}) {
		return l.fault(e.key, "%s has both exec and http; keep one", where)
	}
	if e.name == "exec" {
		r.exec, err = l.exec(e, where+": exec")
	} else {
		r.http, err = l.http(e, where+": http")
	}
	return err
}

// kind is the key of the file that runs it.
func (r runner) kind() string {
	if r.exec != nil {
		return "exec"
	}
	return "http"
}

func (r runner) handler() executor.Handler {
	if r.exec != nil {
		return r.exec.run
	}
	return r.http.run
}
