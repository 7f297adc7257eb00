package secret

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"punctual/shared/executor"
	"punctual/shared/text"
)

// secretParts in a name make it the name of a secret, in any case style.
var secretParts = []string{"password", "passwd", "secret", "api_key", "apikey", "access_token", "private_key",
	authorization}

const authorization = "authorization"

// Parts returns the parts that make a name the name of a secret.
func Parts() []string { return slices.Clone(secretParts) }

// secretWords are whole words that make a name the name of a secret.
var secretWords = []string{
	"pwd", "passphrase", "passcode", "accesstoken", "privatekey", "refreshtoken", "authtoken", "sessiontoken",
	"refresh_token", "auth_token", "id_token", "session_token", "bearer_token", "security_token", "oauth_token",
	"api_token", "bot_token", "private_token",
	"access_key", "account_key", "signing_key", "encryption_key",
	"client_token", "clienttoken", "connection_string", "connectionstring",
}

// secretNames are secrets as the whole name, or after one of secretOwners: pass alone is also a document, and a cookie
// is also something to eat.
var (
	secretNames  = wordSet("pass cookie cookies set_cookie")
	secretOwners = wordSet(`db database smtp imap ftp sftp ssh ldap mysql pg postgres postgresql mongo redis rabbitmq
		user admin root login auth proxy mail email basic session http request`)
)

// innocent words contain "secret" and mean something else.
var innocent = strings.NewReplacer("passwordless", "", "authorizations", "", "secretary", "", "secretaries", "",
	"secretariat", "", "secretarial", "", "secretion", "", "secretive", "")

// metadata are the last words of names of facts about a secret.
var metadata = wordSet(`
	id ids name names url urls uri uris link links href host hostname domain endpoint path file filename
	location region arn arns ref refs reference
	at on date time timestamp expires expiry expiration expired ttl age rotation rotated changed updated
	created requested reset until since
	status state type kind hint policy length size count min max limit version enabled disabled required
	strength format algorithm alg method scheme mode
	label title description note notes comment comments placeholder prompt help source provider issuer manager
	store backend fingerprint field reason
	attempts failures in owner owners used seen`)

// questions are the first words of names that ask about a secret.
var questions = wordSet("has is needs requires require allow allows show hide enable disable without no")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// stems are parts of all names of secrets. Most names have none, which is quick to check.
var stems = []string{"pass", "pwd", "secret", "key", "token", "auth", "credential", "cookie", "connection"}

func suspicious(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= utf8.RuneSelf: // the small form of some letters is ASCII
			return true
		case strings.IndexByte("psktacPSKTAC", c) >= 0:
			for _, stem := range stems {
				if len(name)-i >= len(stem) && strings.EqualFold(name[i:i+len(stem)], stem) {
					return true
				}
			}
		}
	}
	return false
}

// longestName is how many bytes of a name are checked.
const longestName = 512

// fold writes a name as words of small letters with _ between them: accessToken, access-token, ACCESS_TOKEN and "Access
// Token" become access_token.
func fold(name string) string {
	name = name[:min(len(name), longestName)]
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
				b.WriteByte('_')
			}
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLetter(runes[i-1]) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte('_') // aB, and the B of APIBase
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Trim(b.String(), "_")
}

// secrecy is what a name means for the strings below it.
type secrecy uint8

const (
	notSecret      secrecy = iota
	aboutSecret            // a fact about a secret; names below it count on their own
	secretItself           // a string here is a secret, and so are the strings of an object here
	maybeStructure         // authorization, credentials: a header's value, or a record
)

// secrecyOf classifies a name.
func secrecyOf(name string) secrecy {
	folded := fold(name)
	plain := strings.ReplaceAll(strings.ToLower(name[:min(len(name), longestName)]), "-", "_")
	first, _, more := strings.Cut(folded, "_")
	if metadata[folded[strings.LastIndexByte(folded, '_')+1:]] || more && questions[first] {
		return aboutSecret
	}
	plain, folded = innocent.Replace(plain), innocent.Replace(folded)
	for _, part := range secretParts {
		if strings.Contains(folded, part) || strings.Contains(plain, part) {
			if part == authorization {
				return maybeStructure
			}
			return secretItself
		}
	}
	padded := "_" + folded + "_"
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(padded, "_"+w+"_") }) {
		return secretItself
	}
	if last := folded[strings.LastIndexByte(folded, '_')+1:]; last == "credential" || last == "credentials" {
		return maybeStructure
	}
	if owner, last, ok := cutLast(folded, "_"); secretNames[folded] || ok && secretOwners[owner] && secretNames[last] {
		return secretItself
	}
	return notSecret
}

// valueWords name the secret itself in an object about it.
var valueWords = wordSet("value values token key credential credentials bearer basic header plain raw")

// below returns what a field means in an object with a name of secrecy s; own is what its name means alone.
func (s secrecy) below(name string, own secrecy) secrecy {
	switch {
	case own != notSecret || s == notSecret || s == aboutSecret:
		return own
	case s == maybeStructure && !valueWords[fold(name)]:
		return notSecret
	}
	return s
}

func (s secrecy) hidesStrings() bool { return s == secretItself || s == maybeStructure }

// wholeARN is an ARN and nothing else.
var wholeARN = text.Pattern(executor.ARNPattern)

// urlSecret reports whether a text has a URL with a password before its host, or with a secret in its parameters.
func urlSecret(s string) bool {
	for rest := s; ; {
		at := strings.Index(rest, "://")
		if at < 0 {
			break
		}
		rest = rest[at+len("://"):]
		authority := rest
		if end := strings.IndexAny(authority[:min(len(authority), longestName)], "/?# \t\r\n\"'<>\\"); end >= 0 {
			authority = authority[:end]
		}
		authority = authority[:min(len(authority), longestName)]
		if user, _, ok := cutLast(authority, "@"); ok {
			if _, password, ok := strings.Cut(user, ":"); ok && password != "" {
				return true
			}
		}
	}
	start := strings.IndexAny(s, "?#")
	if start < 0 || strings.IndexByte(s, '=') < 0 {
		return false
	}
	for _, pair := range strings.FieldsFunc(s[start+1:],
		func(r rune) bool { return strings.ContainsRune("?&#; \t\r\n\"'<>", r) }) {
		name, value, _ := strings.Cut(pair, "=")
		if len(value) < Shortest || wholeARN().MatchString(value) {
			continue
		}
		if unescaped, err := url.QueryUnescape(name); err == nil {
			name = unescaped
		}
		if tokenParameters[name] || secrecyOf(name).hidesStrings() {
			return true
		}
	}
	return false
}

// tokenParameters are parameters of URLs whose value lets in who has it. In other places these names are too common.
var tokenParameters = wordSet("token sig jwt")

// headerSecret reports whether a text is the value of an Authorization header: Basic or Bearer and what follows. One
// word of letters in one case is taken for a word of a sentence.
func headerSecret(s string) bool {
	if rest, ok := cutFold(strings.TrimSpace(s), authorization+":"); ok {
		s = rest
	}
	s = strings.TrimSpace(s)
	token, ok := cutFold(s, "bearer ")
	if !ok {
		if token, ok = cutFold(s, "basic "); !ok {
			return false
		}
	}
	if token = strings.TrimSpace(token); len(token) < Shortest || !isToken68(token) {
		return false
	}
	small := strings.IndexFunc(token, unicode.IsLower)
	return strings.ContainsAny(token, "0123456789=") ||
		small >= 0 && strings.ContainsFunc(token[small:], unicode.IsUpper)
}

// cutFold cuts a prefix in any case.
func cutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// isToken68 reports whether a text has only the characters of credentials (RFC 9110).
func isToken68(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=") == ""
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}
