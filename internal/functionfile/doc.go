// Package functionfile reads a YAML file of functions that are programs, HTTP
// endpoints or tools of MCP servers, and makes handlers of them: a team adds a function
// in any language with no SDK.
//
//	pool: tools
//	functions:
//	  get_time:
//	    description: The current time.
//	    parameters: {type: object, properties: {}, additionalProperties: false}
//	    timeout: 5s
//	    effects: none
//	    exec: {command: [./get_time.sh, --utc]}
//	  get_weather:
//	    description: The weather of a city.
//	    http: {url: "http://127.0.0.1:9000/weather", headers: {Authorization: "Bearer ${WEATHER_TOKEN}"}}
//
// Everything that can be wrong with the file is found before anything starts, and
// is one Error with file, line and remedy.
package functionfile
