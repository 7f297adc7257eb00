package table

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
)

// activeIn is how long a new table may take to become usable.
const activeIn = 2 * time.Minute

// CreateAll creates the tables of contract.AllSchemas that are not there yet, and waits for
// them. It is for emulators: in AWS the data stack does it, with backups, keys and alarms.
func (t *Table) CreateAll(ctx context.Context) error {
	for _, s := range contract.AllSchemas() {
		if err := t.create(ctx, s); err != nil {
			return session.Fault(err, "creating table %q", t.name(s.Name))
		}
	}
	return nil
}

func (t *Table) create(ctx context.Context, s contract.Schema) error {
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(t.name(s.Name)), BillingMode: types.BillingModePayPerRequest, KeySchema: schemaOf(s.PK,
			s.SK),
	}
	attributes := map[string]bool{}
	attribute := func(name string, number bool) {
		if name == "" || attributes[name] {
			return
		}
		attributes[name] = true
		typ := types.ScalarAttributeTypeS
		if number {
			typ = types.ScalarAttributeTypeN
		}
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: typ})
	}
	attribute(s.PK, false)
	attribute(s.SK, false)
	for _, x := range s.Indexes {
		attribute(x.PK, false)
		attribute(x.SK, x.SKIsNumber)
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if len(x.Project) > 0 {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: x.Project}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.Name), KeySchema: schemaOf(x.PK, x.SK), Projection: projection,
		})
	}
	if s.Stream {
		in.StreamSpecification = &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		}
	}
	_, err := t.db.CreateTable(ctx, in)
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	if err := dynamodb.NewTableExistsWaiter(t.db).Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName},
		activeIn); err != nil {
		return err
	}
	if !s.TTL || exists != nil { // setting the same once more is refused
		return nil
	}
	_, err = t.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: in.TableName,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			Enabled: aws.Bool(true), AttributeName: aws.String(contract.AttrExpiresAt),
		},
	})
	return err
}

func schemaOf(pk, sk string) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash}}
	if sk != "" {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange})
	}
	return schema
}
