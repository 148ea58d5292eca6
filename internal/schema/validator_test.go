package schema

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

const booking = `{"type":"object","properties":{
	"city":{"type":"string","minLength":2,"pattern":"^[A-Z]"},
	"nights":{"type":"integer","minimum":1,"maximum":30},
	"price":{"type":"number","exclusiveMinimum":0},
	"class":{"enum":["first","second",null]},
	"guests":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"a/b~c":{"type":"null"}}},"maxItems":3},
	"note":{"anyOf":[{"type":"string"},{"type":"null"}]}
},"required":["city","nights"],"additionalProperties":false}`

func function(parameters string) call.Function {
	return call.Function{Name: "f", Parameters: []byte(parameters)}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, args, want string }{
		"missing":         {booking, `{}`, "/city: required and missing\n/nights: required and missing"},
		"type":            {booking, `{"city":"Bern","nights":"2"}`, "/nights: got string, want integer"},
		"fraction":        {booking, `{"city":"Bern","nights":2.5}`, "/nights: got number, want integer"},
		"unknown":         {booking, `{"city":"Bern","nights":2,"pets":1}`, "/pets: no such member is allowed"},
		"range":           {booking, `{"city":"Bern","nights":31,"price":0}`, "/nights: must be at most 30\n/price: must be more than 0"},
		"text":            {booking, `{"city":"b","nights":2}`, "/city: does not match the pattern \"^[A-Z]\"\n/city: has 1 characters, needs at least 2"},
		"enum":            {booking, `{"city":"Bern","nights":2,"class":"third"}`, `/class: must be one of "first", "second", null`},
		"in an array":     {booking, `{"city":"Bern","nights":2,"guests":[{"name":"a"},{}]}`, "/guests/1/name: required and missing"},
		"escaped path":    {booking, `{"city":"Bern","nights":2,"guests":[{"name":"a","a/b~c":1}]}`, "/guests/0/a~1b~0c: got number, want null"},
		"optional":        {booking, `{"city":"Bern","nights":2,"note":5}`, "/note: got number, want string or null"},
		"alternatives":    {`{"properties":{"x":{"oneOf":[{"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}]}}}`, `{"x":{"b":2}}`, `/x: fits none of 2 alternatives: (1) /a: required and missing; (2) /b: must be 1`},
		"two of one":      {`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":1}`, `'oneOf' failed, subschemas 0, 1 matched`},
		"by reference":    {`{"properties":{"x":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"x":"1"}`, `/x: got string, want integer`},
		"names":           {`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `/ab: the member's name: has 2 characters, may have at most 1`},
		"not":             {`{"properties":{"x":{"not":{"type":"string"}}}}`, `{"x":""}`, `/x: fits what the schema excludes by "not"`},
		"nothing":         {`{"properties":{"x":false}}`, `{"x":1}`, `/x: not allowed`},
		"draft 7":         {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"x":["a",1]}`, `/x: last 1 additionalItem(s) not allowed`},
		"draft 4":         {`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"x":{"minimum":1,"exclusiveMinimum":true}}}`, `{"x":1}`, `/x: must be more than 1`},
		"2^53+1 is exact": {`{"properties":{"x":{"maximum":9007199254740992}}}`, `{"x":9007199254740993}`, `/x: must be at most 9007199254740992`},
		"large number":    {`{"properties":{"x":{"maximum":5}}}`, `{"x":1e400}`, `/x: must be at most 5`},
		"last duplicate":  {`{"properties":{"x":{"type":"string"}}}`, `{"x":"a","x":1}`, `/x: got number, want string`},
		"a line each":     {`{"additionalProperties":false}`, `{"a\nb":1}`, `"/a\nb": no such member is allowed`},
		"not JSON":        {booking, `{"city":`, "the arguments are not valid JSON: unexpected EOF"},
		"first five": {
			`{"additionalProperties":{"type":"string"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`,
			"/a: got number, want string\n/b: got number, want string\n/c: got number, want string\n/d: got number, want string\n/e: got number, want string\nand 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, new(Validator).Check(function(tc.schema), []byte(tc.args)), tc.want)
		})
	}
}

func TestArgumentsThatFit(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	for name, tc := range map[string]struct{ schema, args string }{
		"no parameters":       {``, `{"x":1}`},
		"any object":          {`{"type":"object"}`, `{"x":1}`},
		"all members":         {booking, `{"city":"Bern","nights":2,"price":1e400,"class":null,"guests":[{"name":""}],"note":null}`},
		"integers of floats":  {booking, `{"city":"Bern","nights":2.0}`},
		"big integers":        {`{"properties":{"x":{"type":"integer","minimum":0}}}`, `{"x":9007199254740993}`},
		"1e400 is an integer": {`{"properties":{"x":{"type":"integer"}}}`, `{"x":1e400}`},
		"beyond comparison":   {`{"properties":{"x":{"type":"integer","maximum":1}}}`, `{"x":1e999999999}`},
		"tiny":                {`{"properties":{"x":{"minimum":1}}}`, `{"x":1e-99999999999999999999}`},
		"very many digits":    {`{"properties":{"x":{"type":"integer"}}}`, `{"x":` + strings.Repeat("9", 1<<20) + `}`},
		"duplicates":          {`{"additionalProperties":false,"properties":{"x":{"type":"string"}}}`, `{"x":1,"x":"a"}`},
		"deep":                {`{"additionalProperties":{"$ref":"#/$defs/a"},"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`, `{"x":` + deep + `}`},
		"format":              {`{"properties":{"x":{"format":"date"}}}`, `{"x":"soon"}`},
		"lookahead":           {`{"properties":{"x":{"pattern":"^(?!a)"}}}`, `{"x":"b"}`},
		"lookahead in not":    {`{"properties":{"x":{"not":{"pattern":"^(?!a)"}}}}`, `{"x":"a"}`},
		"not a schema":        {`{"properties":{"x":{"type":"str"}}}`, `{"x":"a"}`},
		"remote":              {`{"properties":{"x":{"$ref":"http://127.0.0.1:1/x.json"}}}`, `{"x":"a"}`},
		"file":                {`{"properties":{"x":{"$ref":"file:///etc/hostname"}}}`, `{"x":"a"}`},
		"unknown draft":       {`{"$schema":"https://example.com/my-draft"}`, `{"x":"a"}`},
		"huge schema":         {`{"description":"` + strings.Repeat("x", MaxSchema) + `","required":["x"]}`, `{}`},
		"huge limit":          {`{"properties":{"x":{"maximum":1e99999999}}}`, `{"x":1}`},
		"reference to itself": {`{"properties":{"x":{"$ref":"#"}}}`, `{"x":{"x":{}}}`},
		"a draft of the web":  {`{"properties":{"x":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"x":{"type":"object"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &Validator{Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, v.Check(function(tc.schema), []byte(tc.args)))
		})
	}
}

func TestFormatsAreAnnotationsInEveryDraft(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"} {
		for _, format := range append([]string{"regex", "idn-email", "mine"}, asserted...) {
			f := function(fmt.Sprintf(`{"$schema":%q,"properties":{"x":{"format":%q}}}`, draft, format))
			require.NoError(t, new(Validator).Check(f, []byte(`{"x":"(%#~ é"}`)), "%s in %s", format, draft)
		}
	}
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 1<<18)
	for name, tc := range map[string]struct{ schema, args string }{
		"value":   {`{"properties":{"x":{"pattern":"^a$","enum":["a"],"maxLength":1}}}`, `{"x":"` + long + `"}`},
		"name":    {`{"additionalProperties":false}`, `{"` + long + `":1}`},
		"schema":  {`{"properties":{"x":{"const":"` + long[:200_000] + `"}}}`, `{"x":1}`},
		"lines":   {`{"additionalProperties":{"type":"string"}}`, `{"` + long + `a":1,"` + long + `b":1,"` + long + `c":1,"` + long + `d":1,"` + long + `e":1,"` + long + `f":1}`},
		"missing": {`{"required":["` + long[:100_000] + `","b"]}`, `{}`},
		"items":   {`{"properties":{"x":{"contains":{"type":"string"}}}}`, `{"x":[` + strings.Repeat("1,", 100_000) + `1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := new(Validator).Check(function(tc.schema), []byte(tc.args))
			require.Error(t, err)
			require.LessOrEqual(t, len(err.Error()), maxError)
			require.NotContains(t, err.Error(), "\uFFFD", "cut between characters")
		})
	}
}

func TestUselessSchemasAreNotAccepted(t *testing.T) {
	t.Parallel()
	v := &Validator{Logger: slog.New(slog.DiscardHandler)}
	for parameters, want := range map[string]string{
		`{"properties":{"x":{"type":"str"}}}`:                  "is not valid",
		`{"properties":[]}`:                                    "is not valid",
		`{"required":"x"}`:                                     "is not valid",
		`{"properties":{"x":{"$ref":"#/$defs/nope"}}}`:         "is not valid",
		`{"properties":{"x":{"$ref":"http://127.0.0.1:1/x"}}}`: "refers to http://127.0.0.1:1/x, and nothing is loaded from elsewhere; put it under $defs",
		`{"properties":{"x":{"$ref":"file:///etc/hostname"}}}`: "refers to file:///etc/hostname",
		`{"properties":{"x":{"$ref":"other.json"}}}`:           "refers to parameters:///other.json",
		`{"$schema":"https://example.com/my-draft"}`:           "refers to https://example.com/my-draft",
		`{`: "is not JSON",
	} {
		require.ErrorContains(t, v.Accept(function(parameters)), want, parameters)
	}
	for _, parameters := range []string{``, `{}`, booking, `{"properties":{"x":{"pattern":"^(?!a)"}}}`, `{"properties":{"x":{"maximum":1e99999999}}}`} {
		require.NoError(t, v.Accept(function(parameters)), parameters)
	}
}

func TestWhatIsNotCheckedIsSaidOnce(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	v := &Validator{Logger: slog.New(slog.NewTextHandler(&said, nil))}
	f := function(`{"properties":{"x":{"pattern":"^(?=a)"}}}`)
	for range 3 {
		require.NoError(t, v.Accept(f))
		require.NoError(t, v.Check(f, []byte(`{"x":"b"}`)))
	}
	require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
	require.Contains(t, said.String(), "function=f")
}

func TestValidatorRemembersABoundedNumber(t *testing.T) {
	t.Parallel()
	var v Validator
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range kept/2 + 100 {
				f := function(fmt.Sprintf(`{"maxProperties":%d}`, (n%2)*kept+i))
				if err := v.Check(f, []byte(`{}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, len(v.compiled), kept)
	require.Error(t, v.Check(function(`{"maxProperties":0}`), []byte(`{"x":1}`)))
}

func BenchmarkCheck(b *testing.B) {
	var v Validator
	f := function(booking)
	args := []byte(`{"city":"Bern","nights":2,"price":129.5,"class":"first","guests":[{"name":"Ada"},{"name":"Bob"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Check(f, args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compile([]byte(booking)); err != nil {
			b.Fatal(err)
		}
	}
}
