package conformance

import (
	"fmt"
	"strings"
)

// hostile are arguments that a decoder and encoder in between would change.
var hostile = []struct{ name, arguments string }{
	{"empty", `{}`},
	{"white-space", "{ \"a\" :\t1 ,\n  \"b\": [ 1 , 2 ]\r\n}"},
	{"key-order", `{"z":1,"a":2,"m":{"y":1,"b":2},"10":1,"9":2}`},
	{"duplicate-keys", `{"a":1,"a":2,"a":{"a":3,"a":4}}`},
	{"integers", `{"n":9007199254740993,"m":-9223372036854775809,"k":18446744073709551616}`},
	{"numbers", `{"a":1e400,"b":1.0,"c":1E+2,"d":-0,"e":-0.0,"f":0.1000,"g":123456789012345678901234567890.123456789}`},
	{"digits", `{"n":` + strings.Repeat("1234567890", 10) + `}`},
	{"escapes", `{"a":"\u0041\/\b\f\n\r\t\"\\","\u006b":"\u00e9é","s":"\u2028\u2029"}`},
	{"surrogates", `{"a":"\ud83d\ude00","b":"\ud800","c":"\udc00x","d":"😀"}`},
	{"unicode", `{"ключ":"значение","天気":"☂","e":"` + "e\u0301" + `","z":"` + "a\u200db" + `"}`},
	{"separators", "{\"a\":\"x\u2028y\u2029z\u00a0\ufeff\"}"},
	{"nul", `{"a":"\u0000","b":"\u001f"}`},
	{"markup", `{"a":"<script>&amp;</script>","b":"<>&'\"\u003c"}`},
	{"brackets", `{"a":"}]{[","b":"\"}","c":",\"arguments\":{\"x\":1}","d":"\\"}`},
	{"prototype", `{"__proto__":{"a":1},"constructor":{"prototype":1},"toString":"x","hasOwnProperty":1}`},
	{"like-ours", `{"type":"function_call","session_id":"x","call_id":"y","name":"z","arguments":{"arguments":{}},"nonce":"n"}`},
	{"deep", strings.Repeat(`{"a":[`, 500) + `1` + strings.Repeat(`]}`, 500)},
	{"names", `{"":1," ":2,"a.b":3,"$ref":"#","%s":"%d","${x}":"$(y)"}`},
}

func argumentChecks() []check {
	checks := []check{
		core("arguments/plain", func(t *trial) {
			const arguments = `{"customer_id":"123","count":2,"tags":["a","b"]}`
			t.succeeds(t.call("echo", arguments), arguments)
		}),
		full("arguments/megabyte", func(t *trial) {
			arguments := fmt.Sprintf(`{"a":%q}`, strings.Repeat("0123456789abcdef", 1<<16))
			t.succeeds(t.call("echo", arguments), arguments)
		}),
		full("names/unicode", func(t *trial) { t.succeeds(t.call(unicodeName, `{"a": 1}`), `{"a": 1}`) }),
		full("names/long", func(t *trial) { t.succeeds(t.call(longName, `{"a": 1}`), `{"a": 1}`) }),
		full("arguments/that-do-not-fit", func(t *trial) {
			t.succeeds(t.call("typed", `{"count":41}`), "41")
			t.fails(t.call("typed", `{"count":"many"}`), "invalid_arguments")
		}),
	}
	for _, h := range hostile {
		checks = append(checks, full("arguments/"+h.name, func(t *trial) {
			t.succeeds(t.call("echo", h.arguments), h.arguments)
		}))
	}
	return checks
}
