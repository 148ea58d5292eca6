package demo

import (
	"fmt"
	"strings"
)

// conversation is one session of the demo and what is asked in it.
type conversation struct{ question string }

// questions are the examples of the function calling guides: two customers at once;
// two cities at once and then the difference.
var questions = []conversation{
	{"Look up customers 123 and 456."},
	{"北京和上海今天各是什么天气?两地温差多少度?"},
}

// conversations are the sessions to create: the questions, or a load of scripts.
func (o Options) conversations() []conversation {
	if o.Sessions == 0 {
		return questions
	}
	one := fmt.Sprintf(`{"name":%q,"arguments":{"ms":%d}}`, workFunction, o.HandlerMS)
	round := "[" + strings.Repeat(one+",", o.Calls-1) + one + "]"
	script := `{"rounds":[` + strings.Repeat(round+",", o.Rounds-1) + round + `],"say":"done"}`
	list := make([]conversation, o.Sessions)
	for i := range list {
		list[i] = conversation{script}
	}
	return list
}
