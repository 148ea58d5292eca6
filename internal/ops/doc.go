// Package ops is the operators' door to a dispatcher: health, readiness, metrics
// and the admin API, over HTTP.
//
//	GET    /healthz           the process lives
//	GET    /readyz            it can do its work; the answer names what is missing
//	GET    /metrics           Prometheus
//	GET    /v1/sessions       the sessions that the installation watches
//	POST   /v1/sessions       watch sessions: {"ids":["sess_1"]}
//	DELETE /v1/sessions/{id}  stop watching a session
//	GET    /v1/functions      the functions that executors have registered
//	GET    /v1/calls          the recorded calls of a session: ?session=ID; those of all
//	                          sessions in a state: ?state=parked|open|…&limit=N
//	GET    /v1/calls/{session}/{turn}/{call}  one call, its history, and why it is where it is
//	POST   /v1/calls/{session}/{turn}/{call}/decision  decide about it: {"rerun":true},
//	                          {"output":"text"}, {"output_json":[…]} or {"error":"text"}, and "by"
//	GET    /v1/dead           dead letters, the newest first: ?function=NAME&limit=N
//	GET    /v1/dead/{seq}     one dead letter, with its body
//	DELETE /v1/dead/{seq}     drop a dead letter
//	POST   /v1/dead/{seq}/replay  publish a refused outcome once more
//
// The first three are open; the admin API under /v1 asks for a bearer token when
// there is one, and there must be one unless the address is loopback. Errors are
// {"error":{"code":"…","message":"…"}}.
package ops
