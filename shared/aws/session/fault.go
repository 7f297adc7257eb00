package session

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"punctual/shared/fault"
)

// kinds translates what the services call an error. Their names come with and without a
// service's prefix and the words Exception or Fault, so those are cut off before.
var kinds = map[string]fault.Kind{
	"ResourceNotFound":  fault.NotFound,
	"NotFound":          fault.NotFound,
	"NoSuchKey":         fault.NotFound,
	"NoSuchBucket":      fault.NotFound,
	"NonExistentQueue":  fault.NotFound,
	"QueueDoesNotExist": fault.NotFound,

	"Conflict":                fault.Conflict,
	"TransactionConflict":     fault.Conflict,
	"TransactionInProgress":   fault.Conflict,
	"ReplicatedWriteConflict": fault.Conflict,
	"ResourceConflict":        fault.Conflict,
	"ResourceInUse":           fault.Conflict,
	"ResourceNotReady":        fault.Conflict,
	"OperationAborted":        fault.Conflict,

	"Throttling":                    fault.Throttled,
	"Throttled":                     fault.Throttled,
	"ThrottlingError":               fault.Throttled, // in a transaction's reasons
	"RequestThrottled":              fault.Throttled,
	"TooManyRequests":               fault.Throttled,
	"ProvisionedThroughputExceeded": fault.Throttled,
	"RequestLimitExceeded":          fault.Throttled,
	"LimitExceeded":                 fault.Throttled,
	"ServiceQuotaExceeded":          fault.Throttled, // of the Scheduler's entries: they come and go by the minute
	"SlowDown":                      fault.Throttled,
	"OverLimit":                     fault.Throttled, // too many messages in flight
	"KmsThrottled":                  fault.Throttled,
	"KMSThrottled":                  fault.Throttled,
	"EC2Throttled":                  fault.Throttled,

	"RequestTooLarge":                 fault.TooLarge,
	"EntityTooLarge":                  fault.TooLarge,
	"BatchRequestTooLong":             fault.TooLarge,
	"ItemCollectionSizeLimitExceeded": fault.TooLarge,

	"AccessDenied":          fault.Forbidden,
	"UnauthorizedOperation": fault.Forbidden,
	"UnrecognizedClient":    fault.Forbidden,
	"InvalidClientTokenId":  fault.Forbidden,
	"InvalidAccessKeyId":    fault.Forbidden,
	"InvalidSignature":      fault.Forbidden,
	"SignatureDoesNotMatch": fault.Forbidden,
	"KmsAccessDenied":       fault.Forbidden,
	"KMSAccessDenied":       fault.Forbidden,

	// The next call is signed with new credentials and a corrected clock.
	"ExpiredToken":         fault.Unavailable,
	"RequestExpired":       fault.Unavailable,
	"RequestTimeTooSkewed": fault.Unavailable,
	"RequestTimeout":       fault.Unavailable,
}

// Fault says what err means, in the words of package fault; nil stays nil. op is formatted
// with args and says what was being done, to what.
func Fault(err error, op string, args ...any) error {
	if err == nil {
		return nil
	}
	return fault.New(Kind(err), err, op, args...)
}

// Kind names the kind of what the SDK returned. An error that no service spoke is
// fault.Unavailable, since the way there failed, unless the SDK refused to send the request.
func Kind(err error) fault.Kind {
	var api smithy.APIError
	if errors.As(err, &api) {
		if k := CodeKind(api.ErrorCode()); k != "" {
			return k
		}
	}
	var answered *smithyhttp.ResponseError
	if errors.As(err, &answered) {
		return statusKind(answered.HTTPStatusCode())
	}
	if api != nil { // in the body of a 200, as S3 does
		return fault.Invalid
	}
	var params smithy.InvalidParamsError
	var unsent *smithy.SerializationError
	if errors.As(err, &params) || errors.As(err, &unsent) {
		return fault.Invalid
	}
	return fault.Unavailable
}

// CodeKind names the kind of an error code; "" for one that says nothing special.
func CodeKind(code string) fault.Kind {
	if i := strings.LastIndexAny(code, ".#"); i >= 0 {
		code = code[i+1:]
	}
	code = strings.TrimSuffix(strings.TrimSuffix(code, "Exception"), "Fault")
	return kinds[code]
}

func statusKind(status int) fault.Kind {
	switch {
	case status >= http.StatusInternalServerError, status < http.StatusBadRequest: // an answer that cannot be read
		return fault.Unavailable
	case status == http.StatusTooManyRequests:
		return fault.Throttled
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault.Forbidden
	case status == http.StatusNotFound:
		return fault.NotFound
	case status == http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	}
	return fault.Invalid
}
