package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// TablesProps says how the tables are made.
type TablesProps struct {
	Name func(logical string) string // the real name of each
	Key  Key
	Keep bool // retain, and refuse deletion; but for what is made from another table

	Search bool // with the index of jobs

	// Least and Most are provisioned units per second of every table and index; 0 and 0, the
	// default, is on demand.
	Least, Most int
	// WarmWrites and WarmReads are there at once on the jobs table, its indexes and the claims;
	// 0 leaves AWS's default.
	WarmWrites, WarmReads int
}

// RecoveryDays is how far back tables can be restored.
const RecoveryDays = 35

// Tables are all tables of contract.Schemas, and of contract.AllSchemas with the index of jobs.
type Tables struct {
	key    Key
	tables map[string]awsdynamodb.TableV2
}

// NewTables makes them, each with point-in-time recovery of RecoveryDays, but for what is made from another table.
func NewTables(scope constructs.Construct, p TablesProps) Tables {
	t := Tables{key: p.Key, tables: map[string]awsdynamodb.TableV2{}}
	schemas := contract.Schemas()
	if p.Search {
		schemas = contract.AllSchemas()
	}
	for _, s := range schemas {
		t.tables[s.Name] = newTable(scope, s, p)
	}
	return t
}

// After makes the jobs table depend on those parts, and the other tables on the jobs table. A table with deletion
// protection blocks the rollback of a first deploy, so whatever else may fail is made before.
func (t Tables) After(all ...constructs.IDependable) {
	first := t.tables[contract.Jobs]
	first.Node().AddDependency(all...)
	for _, s := range contract.Schemas() {
		if s.Name != contract.Jobs {
			t.tables[s.Name].Node().AddDependency(first)
		}
	}
}

func newTable(scope constructs.Construct, s contract.Schema, p TablesProps) awsdynamodb.TableV2 {
	keep := p.Keep && !s.Remade
	props := &awsdynamodb.TablePropsV2{
		TableName:          jsii.String(p.Name(s.Name)),
		PartitionKey:       attribute(s.PK, false),
		Billing:            p.billing(),
		Encryption:         awsdynamodb.TableEncryptionV2_CustomerManagedKey(p.Key.kms, nil),
		DeletionProtection: jsii.Bool(keep), RemovalPolicy: removal(keep),
	}
	if !s.Remade {
		props.PointInTimeRecoverySpecification = &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true), RecoveryPeriodInDays: jsii.Number(RecoveryDays),
		}
	}
	if s.SK != "" {
		props.SortKey = attribute(s.SK, false)
	}
	if s.TTL {
		props.TimeToLiveAttribute = jsii.String(contract.AttrExpiresAt)
	}
	if s.Stream {
		props.DynamoStream = awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES
	}
	if s.Shipped {
		props.DynamoStream = awsdynamodb.StreamViewType_NEW_IMAGE
	}
	warm := p.warm(s.Name)
	props.WarmThroughput = warm
	var indexes []*awsdynamodb.GlobalSecondaryIndexPropsV2
	for _, x := range s.Indexes {
		index := &awsdynamodb.GlobalSecondaryIndexPropsV2{
			IndexName: jsii.String(x.Name), PartitionKey: attribute(x.PK, false),
			SortKey:        attribute(x.SK, x.SKIsNumber),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY, WarmThroughput: warm,
		}
		if len(x.Project) > 0 {
			index.ProjectionType, index.NonKeyAttributes = awsdynamodb.ProjectionType_INCLUDE, strs(x.Project...)
		}
		indexes = append(indexes, index)
	}
	if len(indexes) > 0 {
		props.GlobalSecondaryIndexes = &indexes
	}
	return awsdynamodb.NewTableV2(scope, jsii.String("Table-"+s.Name), props)
}

func attribute(name string, number bool) *awsdynamodb.Attribute {
	kind := awsdynamodb.AttributeType_STRING
	if number {
		kind = awsdynamodb.AttributeType_NUMBER
	}
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: kind}
}

func (p TablesProps) billing() awsdynamodb.Billing {
	if p.Most == 0 {
		return awsdynamodb.Billing_OnDemand(nil)
	}
	units := func() awsdynamodb.Capacity {
		return awsdynamodb.Capacity_Autoscaled(&awsdynamodb.AutoscaledCapacityOptions{
			MinCapacity: jsii.Number(p.Least), MaxCapacity: jsii.Number(p.Most),
			TargetUtilizationPercent: jsii.Number(70),
		})
	}
	return awsdynamodb.Billing_Provisioned(&awsdynamodb.ThroughputProps{ReadCapacity: units(), WriteCapacity: units()})
}

// warm is for the two tables that every job writes to.
func (p TablesProps) warm(table string) *awsdynamodb.WarmThroughput {
	if p.WarmWrites == 0 && p.WarmReads == 0 || table != contract.Jobs && table != contract.Claims {
		return nil
	}
	w := &awsdynamodb.WarmThroughput{}
	if p.WarmWrites > 0 {
		w.WriteUnitsPerSecond = jsii.Number(p.WarmWrites)
	}
	if p.WarmReads > 0 {
		w.ReadUnitsPerSecond = jsii.Number(p.WarmReads)
	}
	return w
}

// Table returns one of them, by logical name.
func (t Tables) Table(logical string) awsdynamodb.TableV2 { return t.tables[logical] }

// Verb is one thing that a role may do with items.
type Verb string

// The verbs. A transaction needs those of the writes it is made of.
const (
	Get     Verb = "dynamodb:GetItem"
	GetMany Verb = "dynamodb:BatchGetItem"
	Put     Verb = "dynamodb:PutItem"
	Update  Verb = "dynamodb:UpdateItem"
	Delete  Verb = "dynamodb:DeleteItem"
	Check   Verb = "dynamodb:ConditionCheckItem"
	Scan    Verb = "dynamodb:Scan"
)

// GrantItems lets a role do verbs with the items of a table.
func (t Tables) GrantItems(role awsiam.IRole, logical string, verbs ...Verb) {
	actions := make([]string, len(verbs))
	for i, v := range verbs {
		actions[i] = string(v)
	}
	allow(role, strs(actions...), t.tables[logical].TableArn())
}

// GrantQuery lets a role query a table ("") or indexes of it, by name.
func (t Tables) GrantQuery(role awsiam.IRole, logical string, indexes ...string) {
	var arns []*string
	for _, x := range indexes {
		if x == "" {
			arns = append(arns, t.tables[logical].TableArn())
			continue
		}
		arns = append(arns, jsii.String(*t.tables[logical].TableArn()+"/index/"+x))
	}
	allow(role, strs("dynamodb:Query"), arns...)
}

// GrantIdentify lets a role ask which table has a name.
func (t Tables) GrantIdentify(role awsiam.IRole, logical ...string) {
	var arns []*string
	for _, l := range logical {
		arns = append(arns, t.tables[l].TableArn())
	}
	allow(role, strs("dynamodb:DescribeTable"), arns...)
}

// GrantUnder lets a role do verbs with the items of a table whose partitions' names begin so.
func (t Tables) GrantUnder(role awsiam.IRole, logical, begins string, verbs ...Verb) {
	actions := make([]string, len(verbs))
	for i, v := range verbs {
		actions[i] = string(v)
	}
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: strs(actions...), Resources: &[]*string{t.tables[logical].TableArn()},
		Conditions: &map[string]any{"ForAllValues:StringLike": map[string]any{
			"dynamodb:LeadingKeys": jsii.Strings(begins + "*"),
		}},
	}))
}

func allow(role awsiam.IRole, actions *[]*string, resources ...*string) {
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: actions,
		Resources: &resources}))
}
