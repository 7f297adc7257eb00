package api

import "strings"

// letters is a set of bytes.
type letters [256]bool

func lettersOf(ranges ...string) *letters {
	var set letters
	for _, r := range ranges {
		if len(r) == 3 && r[1] == '-' {
			for c := int(r[0]); c <= int(r[2]); c++ {
				set[c] = true
			}
			continue
		}
		for i := range len(r) {
			set[r[i]] = true
		}
	}
	return &set
}

var (
	digitsAndLetters = lettersOf("0-9", "a-z", "A-Z")
	capitals         = lettersOf("0-9", "A-Z")
	hexadecimal      = lettersOf("0-9", "a-f", "A-F")
	wordly           = lettersOf("0-9", "a-z", "A-Z", "_-") // base64url, too
	base64ish        = lettersOf("0-9", "a-z", "A-Z", "+/=")
	dotted           = lettersOf("0-9", "a-z", "A-Z", "_-=.")
	hexDashed        = lettersOf("0-9", "a-f", "A-F", "-")
)

// tokenShape is a form in which a service writes its tokens: a mark, and that many letters of
// a set after it. No letter or digit stands before the mark.
type tokenShape struct {
	mark  string
	rest  *letters
	least int
}

// tokenShapes are forms that everybody can know, by the facts of gitleaks' rules
// (github.com/gitleaks/gitleaks, config/gitleaks.toml at b58d3f1, MIT) and of the services'
// own pages. A form that hashes or plain words could have is left out.
var tokenShapes = byFirst(
	tokenShape{"AKIA", capitals, 16}, tokenShape{"ASIA", capitals, 16}, tokenShape{"ABIA", capitals, 16}, tokenShape{"ACCA", capitals, 16}, // AWS
	tokenShape{"A3T", capitals, 17}, tokenShape{"ABSK", base64ish, 109}, tokenShape{"bedrock-api-key-", base64ish, 24},
	tokenShape{"ghp_", digitsAndLetters, 36}, tokenShape{"gho_", digitsAndLetters, 36}, tokenShape{"ghu_", digitsAndLetters, 36}, // GitHub
	tokenShape{"ghs_", digitsAndLetters, 36}, tokenShape{"ghr_", digitsAndLetters, 36}, tokenShape{"github_pat_", wordly, 22},
	tokenShape{"glpat-", wordly, 20}, tokenShape{"gldt-", wordly, 20}, tokenShape{"glrt-", wordly, 20}, tokenShape{"glft-", wordly, 20}, // GitLab
	tokenShape{"glcbt-", wordly, 20}, tokenShape{"glptt-", hexadecimal, 40}, tokenShape{"gloas-", wordly, 64}, tokenShape{"glsoat-", wordly, 20},
	tokenShape{"glimt-", wordly, 25}, tokenShape{"glagent-", wordly, 50}, tokenShape{"glffct-", wordly, 20}, tokenShape{"GR1348941", wordly, 20},
	tokenShape{"xoxb-", wordly, 10}, tokenShape{"xoxp-", wordly, 10}, tokenShape{"xoxa-", wordly, 10}, tokenShape{"xoxr-", wordly, 10}, // Slack
	tokenShape{"xoxs-", wordly, 10}, tokenShape{"xoxo-", wordly, 10}, tokenShape{"xoxe-", wordly, 10}, tokenShape{"xapp-", wordly, 10},
	tokenShape{"hooks.slack.com/services/", wordlyAnd("/+"), 20}, tokenShape{"hooks.slack.com/workflows/", wordlyAnd("/+"), 20},
	tokenShape{"hooks.slack.com/triggers/", wordlyAnd("/+"), 20},
	tokenShape{"sk_live_", digitsAndLetters, 16}, tokenShape{"rk_live_", digitsAndLetters, 16}, tokenShape{"pk_live_", digitsAndLetters, 16}, // Stripe
	tokenShape{"sk_test_", digitsAndLetters, 16}, tokenShape{"rk_test_", digitsAndLetters, 16}, tokenShape{"sk_prod_", digitsAndLetters, 16},
	tokenShape{"rk_prod_", digitsAndLetters, 16}, tokenShape{"whsec_", base64ish, 16},
	tokenShape{"sk-ant-api03-", wordly, 60}, tokenShape{"sk-ant-admin01-", wordly, 60}, tokenShape{"sk-proj-", wordly, 40}, // Anthropic, OpenAI
	tokenShape{"sk-svcacct-", wordly, 40}, tokenShape{"sk-admin-", wordly, 40}, tokenShape{"pplx-", digitsAndLetters, 48},
	tokenShape{"AIza", wordly, 35}, tokenShape{"GOCSPX-", wordly, 28}, // Google
	tokenShape{"npm_", digitsAndLetters, 36}, tokenShape{"pypi-AgEIcHlwaS5vcmc", wordly, 50}, tokenShape{"rubygems_", hexadecimal, 48},
	tokenShape{"CLOJARS_", digitsAndLetters, 60}, tokenShape{"dckr_pat_", wordly, 27},
	tokenShape{"AKCp", digitsAndLetters, 69}, tokenShape{"cmVmd", digitsAndLetters, 59}, // Artifactory
	tokenShape{"SG.", dotted, 66}, tokenShape{"SK", hexadecimal, 32}, tokenShape{"xkeysib-", hexadecimal, 64}, // SendGrid, Twilio, Brevo
	tokenShape{"hf_", lettersOf("a-z", "A-Z"), 34}, tokenShape{"api_org_", lettersOf("a-z", "A-Z"), 34}, // Hugging Face
	tokenShape{"hvs.", wordly, 24}, tokenShape{"hvb.", wordly, 100}, // Vault
	tokenShape{"dop_v1_", hexadecimal, 64}, tokenShape{"doo_v1_", hexadecimal, 64}, tokenShape{"dor_v1_", hexadecimal, 64}, // DigitalOcean
	tokenShape{"shpat_", hexadecimal, 32}, tokenShape{"shpca_", hexadecimal, 32}, tokenShape{"shppa_", hexadecimal, 32}, tokenShape{"shpss_", hexadecimal, 32},
	tokenShape{"glsa_", wordly, 41}, tokenShape{"glc_", base64ish, 32}, tokenShape{"eyJrIjoi", base64ish, 70}, // Grafana
	tokenShape{"dapi", hexadecimal, 32}, tokenShape{"dp.pt.", digitsAndLetters, 43}, tokenShape{"dt0c01.", dotted, 80}, // Databricks, Doppler, Dynatrace
	tokenShape{"lin_api_", digitsAndLetters, 40}, tokenShape{"ntn_", digitsAndLetters, 46}, tokenShape{"PMAK-", hexDashed, 59}, // Linear, Notion, Postman
	tokenShape{"pscale_tkn_", dotted, 32}, tokenShape{"pscale_oauth_", dotted, 32}, tokenShape{"pscale_pw_", dotted, 32},
	tokenShape{"pnu_", digitsAndLetters, 36}, tokenShape{"pul-", hexadecimal, 40}, tokenShape{"rdme_", digitsAndLetters, 70},
	tokenShape{"sntryu_", hexadecimal, 64}, tokenShape{"sntrys_eyJ", wordlyAnd("+/="), 40}, tokenShape{"sgp_", lettersOf("0-9", "a-f", "A-F", "_"), 40},
	tokenShape{"sq0atp-", wordly, 22}, tokenShape{"sq0csp-", wordly, 40}, tokenShape{"shippo_live_", hexadecimal, 40}, tokenShape{"shippo_test_", hexadecimal, 40},
	tokenShape{"HRKU-AA", wordly, 58}, tokenShape{"LTAI", digitsAndLetters, 20}, tokenShape{"sha256~", wordly, 43}, tokenShape{"tk-us-", wordly, 48},
	tokenShape{"fo1_", wordly, 43}, tokenShape{"fm2_", base64ish, 100}, tokenShape{"NRAK-", capitals, 27}, tokenShape{"API-", capitals, 26},
	tokenShape{"ATATT3", dotted, 100}, tokenShape{"p8e-", digitsAndLetters, 32}, tokenShape{"EZAK", digitsAndLetters, 54}, tokenShape{"EZTK", digitsAndLetters, 54},
	tokenShape{"duffel_live_", dotted, 43}, tokenShape{"duffel_test_", dotted, 43}, tokenShape{"FLWSECK_TEST-", digitsAndLetters, 12},
	tokenShape{"v1.0-", hexDashed, 171}, tokenShape{"ops_eyJ", base64ish, 100}, tokenShape{"AGE-SECRET-KEY-1", capitals, 58},
	tokenShape{"EAAC", digitsAndLetters, 100}, tokenShape{"EAAM", digitsAndLetters, 100},
)

// loose are forms whose mark stands within the token.
var loose = []tokenShape{
	{"T3BlbkFJ", wordly, 20},                                      // OpenAI
	{"Q~", lettersOf("0-9", "a-z", "A-Z", "_~.-"), 31},            // Azure
	{".atlasv1.", dotted, 60},                                     // Terraform
	{"webhook.office.com/webhookb2/", lettersOf("0-9", "a-z"), 8}, // Teams
}

func wordlyAnd(more string) *letters { return lettersOf("0-9", "a-z", "A-Z", "_-", more) }

func byFirst(shapes ...tokenShape) (table [256][]tokenShape) {
	for _, s := range shapes {
		table[s.mark[0]] = append(table[s.mark[0]], s)
	}
	return table
}

// shortestToken is how long any of them is at least.
const shortestToken = 14

// follows says whether enough letters follow a mark.
func (t tokenShape) follows(after string) bool {
	if len(after) < t.least {
		return false
	}
	for i := range t.least {
		if !t.rest[after[i]] {
			return false
		}
	}
	return true
}

// tokenShaped says whether a text holds what has the form of a well-known token, in time that
// grows with the text.
func tokenShaped(s string) bool {
	if len(s) < shortestToken {
		return false
	}
	var jwt jwtFinder
	for i := range len(s) {
		if i > 0 && digitsAndLetters[s[i-1]] {
			continue
		}
		for _, t := range tokenShapes[s[i]] {
			if strings.HasPrefix(s[i:], t.mark) && t.follows(s[i+len(t.mark):]) {
				return true
			}
		}
		if s[i] == 'e' && jwt.at(s, i) {
			return true
		}
	}
	for _, t := range loose {
		for rest := s; ; {
			at := strings.Index(rest, t.mark)
			if at < 0 {
				break
			}
			if rest = rest[at+len(t.mark):]; t.follows(rest) {
				return true
			}
		}
	}
	return strings.Contains(s, "PRIVATE KEY") && privateKey(s)
}

// privateKey says whether a text has the first line of a key in PEM.
func privateKey(s string) bool {
	const longestKind = 40 // of key, such as "OPENSSH "
	for {
		at := strings.Index(s, "-----BEGIN ")
		if at < 0 {
			return false
		}
		s = s[at+len("-----BEGIN "):]
		kind, _, found := strings.Cut(s[:min(len(s), longestKind+len("PRIVATE KEY"))], "PRIVATE KEY")
		if found && !strings.Contains(kind, "-") {
			return true
		}
	}
}

// jwtFinder remembers where the last run of base64url ended, so that no run is read twice.
type jwtFinder struct{ end int }

// at says whether a JSON Web Token begins there: two parts that begin as JSON objects do in
// base64, and a dot after them.
func (f *jwtFinder) at(s string, from int) bool {
	const least = len("eyJ") + 8
	for range 2 {
		if !strings.HasPrefix(s[from:], "eyJ") {
			return false
		}
		if f.end < from+1 {
			f.end = from
			for f.end < len(s) && wordly[s[f.end]] {
				f.end++
			}
		}
		if f.end-from < least || f.end == len(s) || s[f.end] != '.' {
			return false
		}
		from = f.end + 1
	}
	return true
}
