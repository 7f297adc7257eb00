package blob_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/session"
	"punctual/shared/fault"
)

func xml(status int, code string) awstest.Answer {
	return awstest.Answer{
		Status: status, Body: `<Error><Code>` + code + `</Code><Message>said by the test</Message></Error>`,
		Header: http.Header{"Content-Type": {"application/xml"}},
	}
}

func setup(answer func(awstest.Call) awstest.Answer) (*blob.Blobs, *awstest.Service) {
	service := awstest.New(answer)
	cfg := service.Config()
	cfg.BaseEndpoint = aws.String("http://emulator")
	return blob.New(cfg, "bucket"), service
}

func TestBlobs_PutUnderTheKey(t *testing.T) {
	t.Parallel()
	kept := map[string]string{}
	blobs, _ := setup(func(c awstest.Call) awstest.Answer {
		method, path, _ := strings.Cut(c.Op, " ")
		switch body, there := kept[path]; {
		case method == http.MethodPut:
			kept[path] = c.Body
			return awstest.Answer{}
		case method == http.MethodDelete:
			delete(kept, path)
			return awstest.Answer{Status: http.StatusNoContent}
		case there:
			return awstest.Answer{Body: body}
		}
		return xml(http.StatusNotFound, "NoSuchKey")
	})
	if err := blobs.Put(t.Context(), "payload/j#1", []byte("body")); err != nil {
		t.Fatal(err)
	}
	if kept["/bucket/payload/j#1"] != "body" {
		t.Errorf("kept is %v; want the body under the bucket's path", kept)
	}
	if got, err := blobs.Get(t.Context(), "payload/j#1"); err != nil || string(got) != "body" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := blobs.Delete(t.Context(), "payload/j#1"); err != nil {
		t.Error(err)
	}
	if _, err := blobs.Get(t.Context(), "payload/j#1"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after the deletion: %v; want not found", err)
	}
	if got := blobs.Counts().BlobCalls; got != 4 {
		t.Errorf("%d calls were counted; want 4", got)
	}
}

func TestBlobs_NameTheKindOfAFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		kind   fault.Kind
		tries  int
	}{
		"no bucket":   {xml(http.StatusNotFound, "NoSuchBucket"), fault.NotFound, 1},
		"not allowed": {xml(http.StatusForbidden, "AccessDenied"), fault.Forbidden, 1},
		"too fast":    {xml(http.StatusServiceUnavailable, "SlowDown"), fault.Throttled, session.Tries},
		"down":        {xml(http.StatusInternalServerError, "InternalError"), fault.Unavailable, session.Tries},
		"lost":        {awstest.Lost(), fault.Unavailable, session.Tries},
	} {
		synctest.Test(t, func(t *testing.T) {
			for op, call := range map[string]func(*blob.Blobs) error{
				"put":    func(b *blob.Blobs) error { return b.Put(t.Context(), "k", []byte("x")) },
				"get":    func(b *blob.Blobs) error { _, err := b.Get(t.Context(), "k"); return err },
				"delete": func(b *blob.Blobs) error { return b.Delete(t.Context(), "k") },
			} {
				blobs, service := setup(func(awstest.Call) awstest.Answer { return c.answer })
				if err := call(blobs); fault.KindOf(err) != c.kind || service.Calls() != c.tries {
					t.Errorf("%s, %s: %v after %d tries; want %s after %d", name, op, err, service.Calls(), c.kind,
						c.tries)
				}
			}
		})
	}
}

func TestBlobs_NeitherSendNorReadWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("x"), blob.MaxBlob+1)
	blobs, service := setup(func(awstest.Call) awstest.Answer { return awstest.Answer{Body: string(big)} })
	if err := blobs.Put(t.Context(), "k", big); fault.KindOf(err) != fault.TooLarge || service.Calls() != 0 {
		t.Errorf("putting: %v after %d calls; want too large, unsent", err, service.Calls())
	}
	if _, err := blobs.Get(t.Context(), "k"); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("getting: %v; want too large", err)
	}
	for _, key := range []string{"", strings.Repeat("k", 1025)} {
		if err := blobs.Put(t.Context(), key, nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a key of %d bytes: %v; want invalid", len(key), err)
		}
	}
}
