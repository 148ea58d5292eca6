// Package runstore keeps runs in a bucket of JetStream, and carries their notices by a
// stream of JetStream. It is apart from the results store, so that the loss of that one
// loses no run.
//
// Of a run there is one head, which is changed by compare-and-set, and one entry for each
// body: the request, the tools, items and outputs. An output is only ever created.
// Everything goes at Config.Keep, counted from its last change.
package runstore
