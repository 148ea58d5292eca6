// Package processgroup starts programs whose children end with them and, where the
// system can do that, which end with the process that started them.
package processgroup
