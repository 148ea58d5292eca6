package demo

import (
	"fmt"
	"strings"
)

// conversation is one session of the demo and what is asked in it.
type conversation struct {
	// question is what is sent, shown what is printed of it.
	question, shown string
}

// questions are the examples of the function calling guides: two customers at once;
// two cities at once and then the difference.
var questions = []conversation{
	asked("Look up customers 123 and 456."),
	asked("北京和上海今天各是什么天气?两地温差多少度?"),
}

func asked(question string) conversation { return conversation{question: question, shown: question} }

// conversations are the sessions to create: the questions, that for the languages, or
// a load of scripts.
func (o Options) conversations() []conversation {
	if len(o.Languages) > 0 {
		return []conversation{greetings(o.Languages)}
	}
	if o.Sessions == 0 {
		return questions
	}
	one := fmt.Sprintf(`{"name":%q,"arguments":{"ms":%d}}`, workFunction, o.HandlerMS)
	round := "[" + strings.Repeat(one+",", o.Calls-1) + one + "]"
	script := `{"rounds":[` + strings.Repeat(round+",", o.Rounds-1) + round + `],"say":"done"}`
	list := make([]conversation, o.Sessions)
	for i := range list {
		list[i] = asked(script)
	}
	return list
}
