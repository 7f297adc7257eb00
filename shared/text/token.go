package text

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
// a set after it. No letter or digit precedes the mark.
type tokenShape struct {
	mark  string
	rest  *letters
	least int
}

// tokenShapes are forms that everybody can know, by the facts of gitleaks' rules
// (github.com/gitleaks/gitleaks, config/gitleaks.toml at b58d3f1, MIT) and of the services'
// own pages. A form that hashes or plain words could have is left out.
var tokenShapes = byFirst([]tokenShape{
	// AWS
	{"AKIA", capitals, 16}, {"ASIA", capitals, 16}, {"ABIA", capitals, 16}, {"ACCA", capitals, 16},
	{"A3T", capitals, 17}, {"ABSK", base64ish, 109}, {"bedrock-api-key-", base64ish, 24},
	// GitHub
	{"ghp_", digitsAndLetters, 36}, {"gho_", digitsAndLetters, 36}, {"ghu_", digitsAndLetters, 36},
	{"ghs_", digitsAndLetters, 36}, {"ghr_", digitsAndLetters, 36}, {"github_pat_", wordly, 22},
	// GitLab
	{"glpat-", wordly, 20}, {"gldt-", wordly, 20}, {"glrt-", wordly, 20}, {"glft-", wordly, 20},
	{"glcbt-", wordly, 20}, {"glptt-", hexadecimal, 40}, {"gloas-", wordly, 64}, {"glsoat-", wordly, 20},
	{"glimt-", wordly, 25}, {"glagent-", wordly, 50}, {"glffct-", wordly, 20}, {"GR1348941", wordly, 20},
	// Slack
	{"xoxb-", wordly, 10}, {"xoxp-", wordly, 10}, {"xoxa-", wordly, 10}, {"xoxr-", wordly, 10},
	{"xoxs-", wordly, 10}, {"xoxo-", wordly, 10}, {"xoxe-", wordly, 10}, {"xapp-", wordly, 10},
	{"hooks.slack.com/services/", wordlyAnd("/+"), 20}, {"hooks.slack.com/workflows/", wordlyAnd("/+"), 20},
	{"hooks.slack.com/triggers/", wordlyAnd("/+"), 20},
	// Stripe
	{"sk_live_", digitsAndLetters, 16}, {"rk_live_", digitsAndLetters, 16}, {"pk_live_", digitsAndLetters, 16},
	{"sk_test_", digitsAndLetters, 16}, {"rk_test_", digitsAndLetters, 16}, {"sk_prod_", digitsAndLetters, 16},
	{"rk_prod_", digitsAndLetters, 16}, {"whsec_", base64ish, 16},
	// Anthropic, OpenAI
	{"sk-ant-api03-", wordly, 60}, {"sk-ant-admin01-", wordly, 60}, {"sk-proj-", wordly, 40},
	{"sk-svcacct-", wordly, 40}, {"sk-admin-", wordly, 40}, {"pplx-", digitsAndLetters, 48},
	// Google
	{"AIza", wordly, 35}, {"GOCSPX-", wordly, 28},
	{"npm_", digitsAndLetters, 36}, {"pypi-AgEIcHlwaS5vcmc", wordly, 50}, {"rubygems_", hexadecimal, 48},
	{"CLOJARS_", digitsAndLetters, 60}, {"dckr_pat_", wordly, 27},
	// Artifactory
	{"AKCp", digitsAndLetters, 69}, {"cmVmd", digitsAndLetters, 59},
	// SendGrid, Twilio, Brevo
	{"SG.", dotted, 66}, {"SK", hexadecimal, 32}, {"xkeysib-", hexadecimal, 64},
	// Hugging Face
	{"hf_", lettersOf("a-z", "A-Z"), 34}, {"api_org_", lettersOf("a-z", "A-Z"), 34},
	// Vault
	{"hvs.", wordly, 24}, {"hvb.", wordly, 100},
	// DigitalOcean
	{"dop_v1_", hexadecimal, 64}, {"doo_v1_", hexadecimal, 64}, {"dor_v1_", hexadecimal, 64},
	{"shpat_", hexadecimal, 32}, {"shpca_", hexadecimal, 32}, {"shppa_", hexadecimal, 32},
	{"shpss_", hexadecimal, 32},
	// Grafana
	{"glsa_", wordly, 41}, {"glc_", base64ish, 32}, {"eyJrIjoi", base64ish, 70},
	// Databricks, Doppler, Dynatrace
	{"dapi", hexadecimal, 32}, {"dp.pt.", digitsAndLetters, 43}, {"dt0c01.", dotted, 80},
	// Linear, Notion, Postman
	{"lin_api_", digitsAndLetters, 40}, {"ntn_", digitsAndLetters, 46}, {"PMAK-", hexDashed, 59},
	{"pscale_tkn_", dotted, 32}, {"pscale_oauth_", dotted, 32}, {"pscale_pw_", dotted, 32},
	{"pnu_", digitsAndLetters, 36}, {"pul-", hexadecimal, 40}, {"rdme_", digitsAndLetters, 70},
	{"sntryu_", hexadecimal, 64}, {"sntrys_eyJ", wordlyAnd("+/="), 40},
	{"sgp_", lettersOf("0-9", "a-f", "A-F", "_"), 40},
	{"sq0atp-", wordly, 22}, {"sq0csp-", wordly, 40}, {"shippo_live_", hexadecimal, 40},
	{"shippo_test_", hexadecimal, 40},
	{"HRKU-AA", wordly, 58}, {"LTAI", digitsAndLetters, 20}, {"sha256~", wordly, 43}, {"tk-us-", wordly, 48},
	{"fo1_", wordly, 43}, {"fm2_", base64ish, 100}, {"NRAK-", capitals, 27}, {"API-", capitals, 26},
	{"ATATT3", dotted, 100}, {"p8e-", digitsAndLetters, 32}, {"EZAK", digitsAndLetters, 54},
	{"EZTK", digitsAndLetters, 54},
	{"duffel_live_", dotted, 43}, {"duffel_test_", dotted, 43}, {"FLWSECK_TEST-", digitsAndLetters, 12},
	{"v1.0-", hexDashed, 171}, {"ops_eyJ", base64ish, 100}, {"AGE-SECRET-KEY-1", capitals, 58},
	{"EAAC", digitsAndLetters, 100}, {"EAAM", digitsAndLetters, 100},
})

// loose are forms whose mark is within the token.
var loose = []tokenShape{
	{"T3BlbkFJ", wordly, 20},                                      // OpenAI
	{"Q~", lettersOf("0-9", "a-z", "A-Z", "_~.-"), 31},            // Azure
	{".atlasv1.", dotted, 60},                                     // Terraform
	{"webhook.office.com/webhookb2/", lettersOf("0-9", "a-z"), 8}, // Teams
}

func wordlyAnd(more string) *letters { return lettersOf("0-9", "a-z", "A-Z", "_-", more) }

func byFirst(shapes []tokenShape) (table [256][]tokenShape) {
	for _, s := range shapes {
		table[s.mark[0]] = append(table[s.mark[0]], s)
	}
	return table
}

// ShortestToken is how long any of them is at least.
const ShortestToken = 14

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

// TokenShaped says whether a text holds what has the form of a well-known token, in time that
// grows with the text.
func TokenShaped(s string) bool {
	if len(s) < ShortestToken {
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
