package dispatcher

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	deep := `{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`
	for name, tc := range map[string]struct{ args, want, refusal, schema string }{
		"object":                   {args: `{"a": 1}`},
		"the very bytes":           {args: `{"n":9007199254740993,"e":1e400,"d":1,"d":2,"h":"<a&b>"}`},
		"deep":                     {args: deep},
		"encoded object":           {args: `"{\"city\": \"Bern\"}"`, want: `{"city": "Bern"}`},
		"encoded, unwrapped once":  {args: `"\"{}\""`, refusal: "must be a JSON object, not a string"},
		"missing":                  {args: ``, want: `{}`},
		"null":                     {args: `null`, want: `{}`},
		"empty string":             {args: `""`, want: `{}`},
		"encoded null":             {args: `"null"`, want: `{}`},
		"missing though required":  {args: ``, schema: `{"required":["city","day"]}`, refusal: "the arguments are missing; f requires: city, day"},
		"null though required":     {args: `null`, schema: `{"required":["city"]}`, refusal: "the arguments are missing"},
		"null, nothing required":   {args: `null`, schema: `{"type":"object","required":[]}`, want: `{}`},
		"array":                    {args: `[]`, refusal: "must be a JSON object, not an array"},
		"number":                   {args: `7`, refusal: "not a number"},
		"boolean":                  {args: `true`, refusal: "not a boolean"},
		"encoded array":            {args: `"[]"`, refusal: "not an array"},
		"string that is not JSON":  {args: `"{city: Bern}"`, refusal: "does not hold valid JSON"},
		"string cut in the middle": {args: `"{\"city\":"`, refusal: "does not hold valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refused := admit(call.Call{Function: "f", Arguments: []byte(tc.args)}, call.Function{Name: "f", Parameters: []byte(tc.schema)})
			if tc.refusal != "" {
				require.NotNil(t, refused)
				require.Equal(t, call.ReasonInvalidArguments, refused.reason)
				require.Contains(t, refused.text, tc.refusal)
				return
			}
			require.Nil(t, refused)
			if tc.want == "" {
				tc.want = tc.args
			}
			require.Equal(t, tc.want, string(got))
		})
	}
}
