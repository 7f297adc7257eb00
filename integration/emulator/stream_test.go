package emulator_test

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"punctual/shared/item"
)

// tableStream reads a table's stream as Lambda's event source does: every shard from its oldest
// record on. It has one reader and keeps that reader's position.
type tableStream struct {
	streams *dynamodbstreams.Client
	arn     string
	next    map[string]*string // shard → iterator; nil when the shard has ended
	back    []item.Change      // read, but not confirmed by a read of what follows
}

func streamOf(ctx context.Context, cfg aws.Config, table string) (*tableStream, error) {
	out, err := dynamodb.NewFromConfig(cfg).DescribeTable(ctx,
		&dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		return nil, err
	}
	return &tableStream{streams: dynamodbstreams.NewFromConfig(cfg), arn: aws.ToString(out.Table.LatestStreamArn),
		next: map[string]*string{}}, nil
}

// Stream implements system.Stream. Records up to after are confirmed; later ones are repeated.
func (s *tableStream) Stream(ctx context.Context, after string, max int, wait time.Duration) ([]item.Change, error) {
	for n, c := range s.back {
		if c.Seq == after {
			s.back = s.back[n+1:]
			break
		}
	}
	for over := time.Now().Add(wait); len(s.back) == 0 && time.Now().Before(over) && ctx.Err() == nil; {
		if err := s.read(ctx); err != nil {
			return nil, err
		}
		if len(s.back) == 0 {
			time.Sleep(50 * time.Millisecond)
		}
	}
	return s.back[:min(max, len(s.back))], ctx.Err()
}

func (s *tableStream) read(ctx context.Context) error {
	d, err := s.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(s.arn)})
	if err != nil {
		return err
	}
	for _, shard := range d.StreamDescription.Shards {
		id := aws.ToString(shard.ShardId)
		it, known := s.next[id]
		if !known {
			out, err := s.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
				StreamArn: aws.String(s.arn), ShardId: shard.ShardId,
				ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
			})
			if err != nil {
				return err
			}
			it = out.ShardIterator
		}
		if known && it == nil {
			continue
		}
		out, err := s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it})
		if err != nil {
			return err
		}
		for _, r := range out.Records {
			s.back = append(s.back, item.Change{
				Seq: aws.ToString(r.Dynamodb.SequenceNumber), Old: plain(r.Dynamodb.OldImage),
				New: plain(r.Dynamodb.NewImage),
			})
		}
		s.next[id] = out.NextShardIterator
	}
	return nil
}

func plain(image map[string]types.AttributeValue) item.Item {
	if len(image) == 0 {
		return nil
	}
	i := make(item.Item, len(image))
	for name, v := range image {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			i[name] = v.Value
		case *types.AttributeValueMemberN:
			if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
				i[name] = n
			}
		}
	}
	return i
}
