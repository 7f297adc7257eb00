package contract

const (
	// TenantTag is the tag of a resource of the account, such as a function or a queue, that names
	// the tenant whose jobs may use it. Without the tag no job may.
	TenantTag = "punctual:tenant"
	// DeploymentTag is the tag of a function or a queue with the prefix of the deployment whose jobs may
	// use it: of several in an account none reaches what is another's.
	DeploymentTag = "punctual:deployment"
	// ScopesTag is the tag of a role or user that lists what it may, as "read write admin", where callers
	// are known by their signatures; TenantTag then names its tenant.
	ScopesTag = "punctual:scopes"
	// AnyTenant is the value of TenantTag that lets the jobs of every tenant use a resource.
	AnyTenant = "*"
)
