// Package app puts the parts of a dispatcher together and runs them, so that the
// daemon, callfan demo and callfan dev run the very same thing.
//
// A Dispatcher starts in the order of its files: it opens the operators' door,
// waits for NATS and for the results store, makes what the installation needs in
// JetStream, serves the registry and the executors' questions, and then the
// sessions. Whatever it opens is closed in the reverse order.
package app
