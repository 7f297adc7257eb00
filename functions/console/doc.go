// Package console is the console page: static files, embedded, and the settings that they need. The page
// works by the REST API alone, with the token of the user who signed in, so that it can do nothing that its
// user cannot do without it.
//
// What always holds:
//   - No file needs a token, and none holds anything of a tenant.
//   - Each answer has a content security policy under which the page runs its own scripts, reaches its own
//     API and the issuer of its tokens, and nothing else.
//   - Tokens stay in the page's memory: no cookie, no storage.
//
// There is no build step. static/lib holds preact and htm as npm publishes them, apart from one import;
// static/core what all views share, static/views a module for each view.
package console
