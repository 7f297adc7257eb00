package laptop

import (
	"net"
	"net/http"
	"slices"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
)

// loopbackOnly guards a server that listens on addr, on the user's own machine, and asks for no token. A request must
// call it localhost, 127.0.0.1 or [::1], with the port of addr; otherwise a web page could reach it under a name of its
// own (DNS rebinding). A request from a web page must come from this very origin. Browsers send Origin or, where they
// leave that out, Sec-Fetch-Site.
func loopbackOnly(addr string, next http.Handler) http.Handler {
	_, port, err := net.SplitHostPort(addr)
	hosts := []string{}
	if err == nil {
		for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
			hosts = append(hosts, name+":"+port)
			if port == "80" {
				hosts = append(hosts, name)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := r.Header.Values("Origin")
		foreign := slices.ContainsFunc(origins, func(o string) bool { return o != "http://"+r.Host }) ||
			slices.ContainsFunc(r.Header.Values("Sec-Fetch-Site"),
				func(from string) bool { return from != "same-origin" && from != "none" })
		if slices.Contains(hosts, r.Host) && !foreign {
			next.ServeHTTP(w, r)
			return
		}
		detail := "this server answers only to localhost"
		if foreign {
			detail = "a web page of another origin may not ask this server"
		}
		spec.Catalogue.Write(w, "", rest.NewProblem(rest.CodeForbidden, "%s", detail))
	})
}
