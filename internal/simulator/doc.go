// Package simulator serves the OpenAI Agents API (beta "agents=v1") and the function calling of the Responses API from
// memory, for tests, demos and load runs.
//
// It answers the official clients: sessions, input events, server-sent event streams, items, turns, stored agents and
// signed webhooks, with the status codes, error envelopes and event order of the real service. Points the service does
// not document are [Switches]; two profiles ("openai" and "openagentcore") set them. [Faults] make it fail on purpose.
//
// There is no model behind it. A user message that is a JSON object
//
//	{"rounds":[[{"name":"f","arguments":{…}}, …], …],"say":"text"}
//
// makes the session require those calls, round after round, and then answer "say" (see [ParseScript]), with
// "say_results":true followed by what the calls came to. Any other text goes to a small built-in model that knows a few
// questions and uses the functions of agent.tools to answer them.
//
// Responses have the same model and scripts: a script is the last user message of all items that a response continues,
// by previous_response_id, by conversation or in its input, and one round of it is one response (with
// parallel_tool_calls false, or where tool_choice permits less, several). Calls of functions that are async are not waited
// for. Tools that are deferred or absent are searched for, if there is a tool_search. [ScriptCall] has what only responses
// can do: custom tools, namespaces, callers, searches, calls that are cut off.
//
// GET /_sim/stats, GET /_sim/results?session=ID, GET /_sim/responses, GET /_sim/outputs and GET|PUT /_sim/faults are for
// the person at the controls and are no part of the imitated API.
package simulator
