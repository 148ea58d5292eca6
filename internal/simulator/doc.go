// Package simulator serves the OpenAI Agents API (beta "agents=v1") from memory, for tests, demos and load runs.
//
// It answers the official clients: sessions, input events, server-sent event streams, items, turns, stored agents and
// signed webhooks, with the status codes, error envelopes and event order of the real service. Points the service does
// not document are [Switches]; two profiles ("openai" and "openagentcore") set them. [Faults] make it fail on purpose.
//
// There is no model behind it. A user message that is a JSON object
//
//	{"rounds":[[{"name":"f","arguments":{…}}, …], …],"say":"text"}
//
// makes the session require those calls, round after round, and then answer "say" (see [ParseScript]). Any other text
// goes to a small built-in model that knows a few questions and uses the functions of agent.tools to answer them.
//
// GET /_sim/stats, GET /_sim/results?session=ID and GET|PUT /_sim/faults are for the person at the controls and are
// no part of the imitated API.
package simulator
