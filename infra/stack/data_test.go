package stack

import (
	"fmt"
	"strings"
	"testing"

	"punctual/infra/construct"
	"punctual/shared/contract"
)

//proof:of 68 188
func TestTables_AreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	tables := map[string]object{}
	prod().each("AWS::DynamoDB::GlobalTable", func(_ template, _ string, r object) {
		tables[text(at(r, "Properties.TableName"))] = r["Properties"].(object)
	})
	names := contract.Env{Prefix: prod().settings.Prefix}
	if len(tables) != len(contract.Schemas()) {
		t.Errorf("there are %d tables", len(tables))
	}
	keys := func(pk, sk string) string {
		s := `[{"AttributeName":"` + pk + `","KeyType":"HASH"}`
		if sk != "" {
			s += `,{"AttributeName":"` + sk + `","KeyType":"RANGE"}`
		}
		return s + "]"
	}
	for _, s := range contract.Schemas() {
		p := tables[names.TableName(s.Name)]
		if p == nil {
			t.Errorf("there is no table %s", s.Name)
			continue
		}
		if got := compact(p["KeySchema"]); got != keys(s.PK, s.SK) {
			t.Errorf("%s has the key %s; want %s", s.Name, got, keys(s.PK, s.SK))
		}
		if got := at(p, "TimeToLiveSpecification.AttributeName"); s.TTL != (got == contract.AttrExpiresAt) {
			t.Errorf("%s expires by %v", s.Name, got)
		}
		if got := at(p, "StreamSpecification.StreamViewType"); s.Stream != (got == "NEW_AND_OLD_IMAGES") {
			t.Errorf("%s streams %v", s.Name, got)
		}
		if p["BillingMode"] != "PAY_PER_REQUEST" || at(p, "SSESpecification.SSEType") != "KMS" ||
			at(p, "Replicas.0.SSESpecification.KMSMasterKeyId") == nil {
			t.Errorf("%s is billed by %v and encrypted by %s", s.Name, p["BillingMode"], compact(p["SSESpecification"]))
		}
		if at(p, "Replicas.0.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled") != true {
			t.Errorf("%s cannot be recovered", s.Name)
		}
		indexes := list(p["GlobalSecondaryIndexes"])
		if len(indexes) != len(s.Indexes) {
			t.Errorf("%s has %d indexes; want %d", s.Name, len(indexes), len(s.Indexes))
			continue
		}
		for i, x := range s.Indexes {
			if at(indexes[i], "IndexName") != x.Name || compact(at(indexes[i], "KeySchema")) != keys(x.PK, x.SK) {
				t.Errorf("%s has the index %s; want %+v", s.Name, compact(indexes[i]), x)
			}
			if got := fmt.Sprint(list(at(indexes[i], "Projection.NonKeyAttributes"))); got != fmt.Sprint(x.Project) {
				t.Errorf("%s's index %s carries %s; want %v", s.Name, x.Name, got, x.Project)
			}
			for _, a := range list(p["AttributeDefinitions"]) {
				if want := map[bool]string{true: "N", false: "S"}[x.SKIsNumber]; at(a, "AttributeName") == x.SK &&
					at(a, "AttributeType") != want {
					t.Errorf("%s is of type %v; want %s", x.SK, at(a, "AttributeType"), want)
				}
			}
		}
	}
}

//proof:of 75 188 S24
func TestQueues_AreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	queues, ids := map[string]object{}, map[string]string{}
	prod().each("AWS::SQS::Queue", func(_ template, id string, r object) {
		name := text(at(r, "Properties.QueueName"))
		queues[name], ids[name] = r["Properties"].(object), id
	})
	names := contract.Env{Prefix: prod().settings.Prefix}
	for _, q := range contract.Queues() {
		p := queues[names.QueueName(q.Name)]
		if p["VisibilityTimeout"] != q.Visibility.Seconds() || p["MessageRetentionPeriod"] != q.Retention.Seconds() {
			t.Errorf("%s: visibility %v, retention %v; want %+v", q.Name, p["VisibilityTimeout"],
				p["MessageRetentionPeriod"], q)
		}
		if p["KmsMasterKeyId"] == nil || p["FifoQueue"] != nil {
			t.Errorf("%s is encrypted by %v; FIFO: %v", q.Name, p["KmsMasterKeyId"], p["FifoQueue"])
		}
		if q.DeadLetter == "" {
			if p["RedrivePolicy"] != nil {
				t.Errorf("%s has a dead-letter queue", q.Name)
			}
			continue
		}
		if at(p, "RedrivePolicy.maxReceiveCount") != float64(q.MaxReceives) ||
			at(p, "RedrivePolicy.deadLetterTargetArn.Fn::GetAtt.0") != ids[names.QueueName(q.DeadLetter)] {
			t.Errorf("%s: %s; want %d receives, then %s", q.Name, compact(p["RedrivePolicy"]), q.MaxReceives,
				q.DeadLetter)
		}
	}
	if len(queues) != len(contract.Queues()) {
		t.Errorf("there are %d queues", len(queues))
	}
}

//proof:of 188
func TestData_IsReachedByTLSOnly(t *testing.T) {
	t.Parallel()
	denied := 0
	for _, st := range prod().statements() {
		if st.effect == "Deny" && at(st.whole, "Condition.Bool.aws:SecureTransport") == "false" {
			denied++
		}
	}
	if want := len(contract.Queues()) + 3; denied != want { // the bucket and the two topics besides
		t.Errorf("%d policies deny what is not encrypted on the way; want %d", denied, want)
	}
}

//proof:of S24
func TestBucket_IsPrivateAndKeepsPayloadsLongEnough(t *testing.T) {
	t.Parallel()
	prod().each("AWS::S3::Bucket", func(_ template, id string, r object) {
		p := r["Properties"]
		for _, block := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls",
			"RestrictPublicBuckets"} {
			if at(p, "PublicAccessBlockConfiguration."+block) != true {
				t.Errorf("%s: %s is off", id, block)
			}
		}
		days, _ := at(p, "LifecycleConfiguration.Rules.0.ExpirationInDays").(float64)
		if prefix := at(p, "LifecycleConfiguration.Rules.0.Prefix"); prefix != contract.JobBlobs ||
			strings.HasPrefix(contract.ScheduleBlobs, contract.JobBlobs) {
			t.Errorf("%s: objects under %v go with time; a schedule may need its payload for ever", id, prefix)
		}
		for _, rule := range []string{"1", "2"} {
			if days := at(p, "LifecycleConfiguration.Rules."+rule+".ExpirationInDays"); days != nil {
				t.Errorf("%s: every object goes after %v days", id, days)
			}
		}
		// A row that is restored may name an object that was deleted since.
		old, _ := at(p, "LifecycleConfiguration.Rules.1.NoncurrentVersionExpiration.NoncurrentDays").(float64)
		if at(p, "VersioningConfiguration.Status") != "Enabled" || old <= construct.RecoveryDays {
			t.Errorf("%s: old versions are kept for %v days; tables can be restored for %d", id, old,
				construct.RecoveryDays)
		}
		if least := (contract.MaxAhead + contract.DeadKept).Hours() / 24; days < least || days > least+30 {
			t.Errorf("%s: objects go after %v days; a job may need one for %v", id, days, least)
		}
	})
}

func TestBackup_CopiesAllDataToTheOtherAccountEachDay(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for _, d := range []*synthesized{prod(), held()} {
		d.each("AWS::Backup::BackupPlan", func(_ template, _ string, r object) {
			kinds["plan"]++
			rule := "Properties.BackupPlan.BackupPlanRule.0."
			to := fmt.Sprint(at(r, rule+"CopyActions.0.DestinationBackupVaultArn"))
			if !strings.Contains(to, "210987654321:backup-vault:punctual") || at(r, rule+"ScheduleExpression") == nil {
				t.Errorf("the plan copies to %s", to)
			}
		})
		d.each("AWS::Backup::BackupSelection", func(_ template, _ string, r object) {
			all, _ := at(r, "Properties.BackupSelection.Resources").([]any)
			if kinds["selection"]++; len(all) != len(contract.Schemas())+1 {
				t.Errorf("%d resources are copied; want each table, and the bucket", len(all))
			}
		})
	}
	if kinds["plan"] != 1 || kinds["selection"] != 1 {
		t.Errorf("there are %v; only who names an account has copies", kinds)
	}
}

func TestTables_HaveTheCapacityThatIsPaidFor(t *testing.T) {
	t.Parallel()
	billed := func(d *synthesized) (modes []string) {
		d.each("AWS::DynamoDB::GlobalTable", func(_ template, _ string, r object) {
			modes = append(modes, fmt.Sprint(at(r, "Properties.BillingMode")))
		})
		return modes
	}
	for name, d := range map[string]*synthesized{"PAY_PER_REQUEST": prod(), "PROVISIONED": held()} {
		modes := billed(d)
		if len(modes) != len(contract.Schemas()) {
			t.Errorf("%d tables", len(modes))
		}
		for _, mode := range modes {
			if mode != name {
				t.Errorf("a table is billed %s, want %s", mode, name)
			}
		}
	}
}

// A weak reference has CloudFormation plan the replacement of what it cannot update, and lets the producer go.
func TestReferences_BetweenStacksAreStrong(t *testing.T) {
	t.Parallel()
	imports := 0
	for _, d := range []*synthesized{dev(), prod(), ownTokens(), signed()} {
		d.each("", func(s template, id string, r object) {
			body := compact(r)
			if strings.Contains(body, "Fn::GetStackOutput") {
				t.Errorf("%s %s of %s has a weak reference", s.name, id, d.settings.Prefix)
			}
			imports += strings.Count(body, "Fn::ImportValue")
		})
	}
	if imports < 50 {
		t.Errorf("%d values are imported", imports)
	}
}

// An export that a setting takes away would be refused at the next deploy: the stack that used it goes later.
func TestData_KeepsItsExportsWhateverIsSet(t *testing.T) {
	t.Parallel()
	with, n := held().template("data").outputs, 0
	for name, output := range prod().template("data").outputs {
		if at(output, "Export.Name") == nil {
			continue
		}
		if n++; at(with[name], "Export.Name") != at(output, "Export.Name") ||
			compact(at(with[name], "Value")) != compact(at(output, "Value")) {
			t.Errorf("%s is %s, and without settings %s", name, compact(with[name]), compact(output))
		}
	}
	if n == 0 {
		t.Error("nothing is exported")
	}
}

// What refuses its deletion blocks the roll-back of a first deploy, so nothing may fail after it.
func TestData_MakesWhatIsProtectedLast(t *testing.T) {
	t.Parallel()
	d := synth("prod", "prod-tokens", "issuer", "", "audience", "", "auth", "cognito", "tenants", "acme")
	data := d.template("data")
	for _, id := range sorted(data.resources) {
		kind := text(data.resources[id]["Type"])
		if kind != "AWS::Cognito::UserPool" && kind != "AWS::DynamoDB::GlobalTable" {
			continue
		}
		before := data.waitsFor(id)
		for _, other := range sorted(data.resources) {
			switch at(data.resources[other], "Type") {
			case "AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::S3::Bucket", "AWS::S3::BucketPolicy":
				if !before[other] {
					t.Errorf("%s may be made before %s", id, other)
				}
			}
		}
	}
}
