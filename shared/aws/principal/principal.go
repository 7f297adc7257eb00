package principal

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"punctual/shared/aws/session"
	"punctual/shared/cache"
)

const (
	// Age is how long the tags of a principal are believed.
	Age = time.Minute

	most     = 1000 // principals remembered
	answerIn = 5 * time.Second
)

// Principals reads tags. It is safe for concurrent use.
type Principals struct {
	iam  *iam.Client
	tags *cache.Cache[string, map[string]string] // by ARN
}

// New returns the principals of the account.
func New(cfg aws.Config) *Principals {
	return &Principals{
		iam:  iam.NewFromConfig(session.Within(cfg, answerIn, nil)),
		tags: cache.New[string](cache.Options[map[string]string]{Age: Age, Most: most}),
	}
}

// Tags returns the tags of the role or user that an ARN of a caller names, as they stood at most Age
// ago: arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION or arn:aws:iam::ACCOUNT:user/PATH/NAME. Any
// other, as the account's root, has none. The caller must have checked the account.
func (p *Principals) Tags(ctx context.Context, arn string) (map[string]string, error) {
	kind, name := named(arn)
	if name == "" {
		return nil, nil
	}
	return p.tags.Get(ctx, kind+"/"+name, func(ctx context.Context) (map[string]string, error) {
		if kind == role {
			return p.ofRole(ctx, name)
		}
		return p.ofUser(ctx, name)
	})
}

const role, user = "role", "user"

// named returns what an ARN is of: a role by an assumed one's, or a user, whose path is cut off.
func named(arn string) (kind, name string) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return "", ""
	}
	switch path := strings.Split(parts[5], "/"); {
	case parts[2] == "sts" && path[0] == "assumed-role" && len(path) == 3:
		return role, path[1]
	case parts[2] == "iam" && path[0] == "user" && len(path) >= 2:
		return user, path[len(path)-1]
	}
	return "", ""
}

// ofRole takes the first hundred tags; a role has 50 at the most.
func (p *Principals) ofRole(ctx context.Context, name string) (map[string]string, error) {
	out, err := p.iam.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: aws.String(name), MaxItems: aws.Int32(100)})
	if err != nil {
		return nil, failed(err, role, name)
	}
	return values(out.Tags), nil
}

func (p *Principals) ofUser(ctx context.Context, name string) (map[string]string, error) {
	out, err := p.iam.ListUserTags(ctx, &iam.ListUserTagsInput{UserName: aws.String(name), MaxItems: aws.Int32(100)})
	if err != nil {
		return nil, failed(err, user, name)
	}
	return values(out.Tags), nil
}

func failed(err error, kind, name string) error {
	return session.Fault(err, "reading the tags of the %s %s", kind, name)
}

func values(tags []types.Tag) map[string]string {
	of := map[string]string{}
	for _, t := range tags {
		of[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return of
}
