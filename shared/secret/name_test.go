package secret

import (
	"strings"
	"testing"

	"punctual/shared/document"
)

const (
	hidden   = true
	harmless = false
)

// Tokens are assembled here, so that no scanner reports this file as a leak.
// secretARN is the beginning of an ARN that names a secret.
const secretARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/db"

//proof:of F35
func TestSearch_KnowsSecretsByTheirNames(t *testing.T) {
	t.Parallel()
	const given = "hunter2hunter2"
	for name, secret := range map[string]bool{
		"password": hidden, "Password": hidden, "PASSWORD": hidden, "dbPasswordOld": hidden, "db-password": hidden,
		"db password": hidden, "passWord": hidden,
		"userpassword1": hidden, "passwd": hidden, "secret": hidden, "clientSecret": hidden, "client_secret": hidden,
		"CLIENT-SECRET": hidden, "secretKey": hidden,
		"api_key": hidden, "apiKey": hidden, "APIKey": hidden, "apikey": hidden, "API_KEY": hidden,
		"X-Api-Key": hidden, "x-apikey": hidden, "apiKey2": hidden,
		"access_token": hidden, "accessToken": hidden, "AccessToken": hidden, "ACCESS-TOKEN": hidden,
		"accesstoken": hidden, "private_key": hidden, "privateKey": hidden,
		"private-key-pem": hidden, "refresh_token": hidden, "refreshToken": hidden, "id_token": hidden,
		"passphrase": hidden, "keyPassphrase": hidden, "pwd": hidden, "DB_PWD": hidden,
		"Authorization": hidden, "proxy-authorization": hidden, "sessionToken": hidden,
		"aws_secret_access_key": hidden, "signingKey": hidden, "password_reset_token": hidden,
		"secretary_password": hidden, "api_\u212aey": hidden,

		"pass": hidden, "PASS": hidden, "db_pass": hidden, "smtpPass": hidden, "credentials": hidden,
		"credential":     hidden,
		"awsCredentials": hidden, "clientToken": hidden, "client-token": hidden, "connectionString": hidden,
		"CONNECTION_STRING": hidden, "Cookie": hidden, "Set-Cookie": hidden, "session_cookie": hidden,
		"has_secret_password": harmless, "passwordless": harmless, "passwordlessLogin": harmless,
		"has_password": harmless, "hasPassword": harmless, "is_secret": harmless, "secret_owner": harmless,
		"password_last_used": harmless, "passwordLastUsed": harmless, "authorizations": harmless,
		"boarding_pass": harmless, "compass": harmless, "bypass": harmless, "pass_rate": harmless,
		"cookie_domain": harmless, "cookie_name": harmless, "cookie_consent": harmless, "credentials_id": harmless,
		"connection": harmless, "connection_id": harmless,

		"secretary": harmless, "secretaries": harmless, "secretariat_office": harmless,
		"executiveSecretary": harmless, "password_reset_url": harmless, "passwordResetUrl": harmless,
		"password_changed_at": harmless,
		"secret_name":         harmless, "secretName": harmless, "secret-arn": harmless,
		"authorization_status": harmless,
		"authorizationStatus":  harmless, "api_key_id": harmless, "apiKeyId": harmless,
		"client_secret_expires_at": harmless, "clientSecretExpiresAt": harmless, "access_token_expires_in": harmless,
		"password_policy": harmless, "password_hint": harmless, "private_key_path": harmless,
		"passage": harmless, "token": harmless, "next_token": harmless, "tokenizer": harmless,
		"pwdLength": harmless, "keyboard": harmless, "monkey": harmless, "author": harmless, "public_key": harmless,
		"id": harmless, "": harmless,
	} {
		d, err := document.Read([]byte(`{"` + name + `":"` + given + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		if suspected(d) != secret {
			t.Errorf("a string under %q: taken for a secret is %v, want %v", name, suspected(d), secret)
		}
	}
}

//proof:of F35
func TestSearch_KnowsSecretsByTheirFormAndPath(t *testing.T) {
	t.Parallel()
	letter := func(n int) string { return strings.Repeat("aB3", n)[:n] }
	hex := func(n int) string { return strings.Repeat("0a", n)[:n] }
	digits := func(n int) string { return strings.Repeat("7", n) }
	for text, secret := range map[string]bool{
		`{"password":{"value":"hunter2hunter2"}}`:                                 hidden,
		`{"password":{"current":"hunter2hunter2","previous":null}}`:               hidden,
		`{"passwords":["hunter2hunter2"]}`:                                        hidden,
		`{"secrets":{"db":{"value":["hunter2hunter2"]}}}`:                         hidden,
		`{"authorization":{"value":"hunter2hunter2"}}`:                            hidden,
		`{"authorization":{"merchant":"a long name","id":"12345678"}}`:            harmless,
		`{"secret":{"name":"a-long-name","arn":"not an arn"}}`:                    harmless,
		`{"password":{"policy":"at least 12"}}`:                                   harmless,
		`{"password":"arn:hunter2hunter2"}`:                                       hidden,
		`{"password":"arn:aws:secretsmanager"}`:                                   hidden,
		`{"password":"` + secretARN + ` and hunter2"}`:                            hidden,
		`{"password":"` + secretARN + `-AbCdEf"}`:                                 harmless,
		`{"name":"password","value":"hunter2hunter2"}`:                            hidden,
		`{"value":"hunter2hunter2","name":"X-Api-Key"}`:                           hidden,
		`[{"key":"DB_PASSWORD","value":"hunter2hunter2"}]`:                        hidden,
		`{"header":"Authorization","value":["hunter2hunter2"]}`:                   hidden,
		`{"name":"password policy","value":"at least twelve"}`:                    harmless,
		`{"name":"city","value":"a long name of one"}`:                            harmless,
		`{"name":"password","description":"at least twelve"}`:                     harmless,
		`{"credentials":{"user":"a-long-name","password":"hunter2hunt"}}`:         hidden,
		`{"credentials":{"user":"a-long-name","token":"hunter2hunter2"}}`:         hidden,
		`{"credentials":{"user":"a-long-name"}}`:                                  harmless,
		`{"authorizations":["read:orders","write:orders"]}`:                       harmless,
		`"Bearer hunter2hunter2"`:                                                 hidden,
		`"bearer aBcDeFgHiJkL"`:                                                   hidden,
		`"Basic dXNlcjpwYXNz"`:                                                    hidden,
		`"Authorization: Basic dXNlcjpwYXNz"`:                                     hidden,
		`"Basic understanding"`:                                                   harmless,
		`"Bearer Instruments"`:                                                    harmless,
		`"Basic course 101 for all"`:                                              harmless,
		`"https://example.com/hook?token=hunter2hunter2"`:                         hidden,
		`"https://example.com/?a=1&sig=hunter2hunter2"`:                           hidden,
		`"https://example.com/?token=short"`:                                      harmless,
		`{"password":"short"}`:                                                    harmless,
		`{"password":12345678}`:                                                   harmless,
		`"https://api.example.com/v1?api_key=hunter2hunter2"`:                     hidden,
		`"https://api.example.com/v1?a=1&access%5Ftoken=hunter2hunter2#x"`:        hidden,
		`"see https://api.example.com/#accessToken=hunter2hunter2&state=1"`:       hidden,
		`"/relative?client-secret=hunter2hunter2"`:                                hidden,
		`"https://user:pass@example.com/"`:                                        hidden,
		`"postgres://app:p%40ss@db.internal:5432/x"`:                              hidden,
		`"redis://:pass@cache:6379"`:                                              hidden,
		`"https://user@example.com/"`:                                             harmless,
		`"ssh://git@example.com:22/x"`:                                            harmless,
		`"https://example.com:8443/a:b@c"`:                                        harmless,
		`"https://example.com/?q=password&page_token=123456789"`:                  harmless,
		`"https://example.com/?api_key=short"`:                                    harmless,
		`"https://example.com/reset?password_reset_id=123456789"`:                 harmless,
		`"What is a password? It is = to nothing"`:                                harmless,
		`"task_test_integrationsuite01"`:                                          harmless,
		`"task_live_integrationsuite01"`:                                          harmless,
		`"ghost_story_of_a_very_long_name_that_ends_here_somewhere"`:              harmless,
		`"desk-proj-is-a-long-name-of-something-that-is-no-token"`:                harmless,
		`"` + hex(40) + `"`:                                                       harmless,
		`"key-` + hex(32) + `"`:                                                   harmless,
		`"AKIA` + strings.Repeat("A", 16) + `"`:                                   hidden,
		`"xAKIA` + strings.Repeat("A", 16) + `"`:                                  harmless,
		`"token=ghp_` + letter(36) + `;"`:                                         hidden,
		`"github_pat_` + letter(22) + `"`:                                         hidden,
		`"glpat-` + letter(20) + `"`:                                              hidden,
		`"xoxb-` + digits(12) + `"`:                                               hidden,
		`"https://hooks.slack.com/services/T00/B00/` + letter(24) + `"`:           hidden,
		`"sk_live_` + letter(24) + `"`:                                            hidden,
		`"sk_test_` + letter(24) + `"`:                                            hidden,
		`"sk-ant-api03-` + letter(95) + `"`:                                       hidden,
		`"sk-proj-` + letter(60) + `"`:                                            hidden,
		`"sk-` + letter(20) + `T3BlbkFJ` + letter(20) + `"`:                       hidden,
		`"AIza` + letter(35) + `"`:                                                hidden,
		`"GOCSPX-` + letter(28) + `"`:                                             hidden,
		`"npm_` + letter(36) + `"`:                                                hidden,
		`"npm_config_registry_of_the_whole_company_and_more"`:                     harmless,
		`"hf_` + strings.Repeat("aB", 17) + `"`:                                   hidden,
		`"hvs.` + letter(30) + `"`:                                                hidden,
		`"dop_v1_` + hex(64) + `"`:                                                hidden,
		`"SG.` + letter(22) + `.` + letter(43) + `"`:                              hidden,
		`"dapi` + hex(32) + `"`:                                                   hidden,
		`"abc8Q~` + letter(34) + `"`:                                              hidden,
		`"shpat_` + hex(32) + `"`:                                                 hidden,
		`"Bearer eyJ` + letter(20) + `.eyJ` + letter(20) + `.` + letter(20) + `"`: hidden,
		`"eyJ` + letter(20) + `.` + letter(20) + `"`:                              harmless,
		`"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"`:                             hidden,
		`"-----BEGIN PUBLIC KEY-----\nAAAA PRIVATE KEY"`:                          harmless,
		`{"AKIA` + strings.Repeat("A", 16) + `":1}`:                               hidden,
	} {
		d, err := document.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if suspected(d) != secret {
			t.Errorf("%s: taken for a secret is %v, want %v", text, suspected(d), secret)
		}
	}
}

func suspected(d *document.Document) bool {
	for range (&Search{Doc: d}).Below(0, "/payload", nil) {
		return true
	}
	return false
}
