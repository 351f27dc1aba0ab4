// Package early runs a plain run in the embedded store before the clients of stores on servers are initialized: it needs none of them, and to
// initialize them takes as long as to start two processes. Package ahead, before that, starts the guard. Only cmd/interlock imports the two, for
// they take the arguments of the process for those of the command before main does.
//
// Packages are initialized in the order of their import paths as far as their imports allow (Go spec, "Program initialization"): this one when the
// standard library's packages are that it needs, and before gRPC and etcd's client, which need more of them; ahead before net and log/slog.
package early
