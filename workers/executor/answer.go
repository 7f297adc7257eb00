package executor

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"punctual/shared/contract"
	"punctual/shared/text"
)

// maxAnswer is how much of an answer's body is read, in bytes; what is beyond stays unread.
const maxAnswer = 1 << 20

// httpResult is the result of a job of the http executor.
type httpResult struct {
	Status    int    `json:"status"`
	Body      string `json:"body"` // text
	Truncated bool   `json:"truncated"`
	Encoding  string `json:"encoding,omitempty"` // inBase64: the answer is no UTF-8, and body is its bytes so
	// ContentType is the answer's header, "" for none: it says whether the body is JSON.
	ContentType string `json:"content_type,omitempty"`
}

// inBase64 is the encoding of a body that is no text.
const inBase64 = "base64"

// failureOf says what a status other than 2xx means. The answer's own words are left out: a target
// may repeat a secret in them, or whatever else it was sent.
func failureOf(answer *http.Response, now time.Time) *Failure {
	status := answer.StatusCode
	f := &Failure{
		Code:    CodeHTTPStatus,
		Message: strings.TrimSpace(fmt.Sprintf("the target answered %d %s", status, http.StatusText(status))),
	}
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500:
		f.RetryAfter = retryAfter(answer.Header.Get("Retry-After"), now)
	default:
		f.Permanent = true
	}
	return f
}

// retryAfter reads the header in both of its forms, seconds and a date; 0 when there is none
// or it is in the past. It is capped, so that a target cannot park a job.
func retryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header != "" && strings.Trim(header, "0123456789") == "" {
		seconds, err := strconv.ParseInt(header, 10, 64)
		if err != nil || seconds > int64(contract.MaxRetryAfter/time.Second) {
			return contract.MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), contract.MaxRetryAfter)
}

// readResult reads a good answer; at most so many bytes of its body are kept. With a body that is cut it returns
// ErrShortened; any other error means that the answer broke off.
func readResult(answer *http.Response, secrets *wallet, most int) (json.RawMessage, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	cut := len(raw) > maxAnswer
	body := secrets.scrub(string(raw))
	if cut {
		// Half a secret at the end was not recognised.
		body = wholeRunes(body[:max(0, len(body)-secrets.longest())])
	}
	result := httpResult{Status: answer.StatusCode, ContentType: contentType(answer)}
	isText := utf8.ValidString(body)
	if result.Truncated = cut || len(body) > most; len(body) > most {
		if body = body[:most]; isText {
			body = wholeRunes(body)
		}
	}
	if result.Body = body; !isText {
		result.Body, result.Encoding = base64.StdEncoding.EncodeToString([]byte(body)), inBase64
	}
	encoded, err := text.JSON(result)
	if err == nil && result.Truncated {
		err = ErrShortened
	}
	return encoded, err
}

// maxContentType bounds what is kept of the Content-Type, in bytes.
const maxContentType = 256

// contentType returns the answer's Content-Type, "" for none or one that is no text.
func contentType(answer *http.Response) string {
	value := answer.Header.Get("Content-Type")
	if len(value) > maxContentType || !utf8.ValidString(value) {
		return ""
	}
	return value
}

// wholeRunes takes off the beginning of a rune that text was cut in.
func wholeRunes(text string) string {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(text[len(text)-n:]) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}
