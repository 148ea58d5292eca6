// Package demo shows callfan at work on one machine, without network and API key: a
// nats-server in process, the simulator of the API, a dispatcher, and an executor in
// a process of its own.
package demo
