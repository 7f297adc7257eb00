package awstest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Call is one request, retries of the SDK included.
type Call struct {
	N    int    // the how many-th of this service, from 1
	Op   string // "PutItem"; of a REST service the method and the path: "POST /schedules/j-1"
	Body string
}

// Field returns a field at the top of a JSON body, "" if it is absent or no string.
func (c Call) Field(name string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(c.Body), &fields) != nil {
		return ""
	}
	s, _ := fields[name].(string)
	return s
}

// Answer is what the service says.
type Answer struct {
	Status int         // 0 is 200
	Body   string      // "" is {}
	Header http.Header // beyond the content type
	Lost   bool        // the client sees a timeout instead
}

// OK answers with a body.
func OK(body string) Answer { return Answer{Body: body} }

// Lost takes effect, but its answer does not arrive.
func Lost() Answer { return Answer{Lost: true} }

// Fault answers with an error of the service, and more of what it says, as the inside of a
// JSON object ("" for nothing).
func Fault(status int, code, more string) Answer {
	body := `{"__type":"aws#` + code + `","message":"said by the test"`
	if more != "" {
		body += "," + more
	}
	return Answer{Status: status, Body: body + "}", Header: http.Header{"X-Amzn-Errortype": {code}}}
}

// Service is an aws.HTTPClient. Its function is called by one goroutine at a time.
type Service struct {
	mu     sync.Mutex
	n      int
	answer func(Call) Answer
}

// New returns a service that answers so.
func New(answer func(Call) Answer) *Service { return &Service{answer: answer} }

// Config is a configuration that reaches nothing but s.
func (s *Service) Config() aws.Config {
	return aws.Config{
		Region: "us-east-1", HTTPClient: s,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Do answers a request.
func (s *Service) Do(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	op := req.Method + " " + req.URL.Path
	if target := req.Header.Get("X-Amz-Target"); target != "" {
		op = target[strings.LastIndex(target, ".")+1:]
	}
	s.mu.Lock()
	s.n++
	a := s.answer(Call{N: s.n, Op: op, Body: string(body)})
	s.mu.Unlock()
	if a.Lost {
		return nil, timeout{}
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Body == "" {
		a.Body = "{}"
	}
	header := a.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return &http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader([]byte(a.Body))), ContentLength: int64(len(a.Body)),
		Request: req,
	}, nil
}

// Calls is how many requests came so far.
func (s *Service) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// timeout is the error of a connection on which no answer came.
type timeout struct{}

func (timeout) Error() string   { return "the test lost the answer" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
