// Package serve is the server around package web: what interlock serve has beside the pages. It
// decides who may reach them and as whom (loopback, bearer tokens, client certificates, a login for
// browsers), bounds what a client can cost, measures, says whether it is ready, and ends without
// cutting anybody off.
//
// A request passes, in this order:
//
//	connection ─ bounded in number; of too many one without a request goes first
//	request    ─ bounded in header, body and time
//	/healthz, /readyz ─ answered for everybody
//	Host       ─ one by which this server is meant, or 421
//	credential ─ or 401; /login makes a cookie of a token
//	/metrics, or package web, which is told who asks and what he may do
//
// A store that cannot be reached is no reason not to serve the others: it is opened again and
// again, and shown as down until then.
package serve
