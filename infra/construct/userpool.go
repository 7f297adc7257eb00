package construct

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// ResourceServer is the name that Cognito writes before each scope, with a slash after it.
const ResourceServer = "punctual"

// TenantScope is what precedes the tenant in the scope that names it, without the server's name.
const TenantScope = "tenant."

// UserPoolProps says for whom there are tokens.
type UserPoolProps struct {
	Name    string
	Tenants []string // each gets a client, whose tokens are for that tenant and no other
	Keep    bool     // retain, and refuse deletion
}

// UserPool gives out tokens to programs. Nobody can sign up to it, and it sends no mail.
type UserPool struct {
	pool    awscognito.UserPool
	clients []awscognito.UserPoolClient
	domain  awscognito.UserPoolDomain
}

// NewUserPool makes the pool. The name of its domain contains the account's number, because all accounts of a region
// share one namespace of domains.
func NewUserPool(scope constructs.Construct, id string, p UserPoolProps) UserPool {
	pool := awscognito.NewUserPool(scope, jsii.String(id), &awscognito.UserPoolProps{
		UserPoolName: jsii.String(p.Name), SelfSignUpEnabled: jsii.Bool(false),
		AccountRecovery: awscognito.AccountRecovery_NONE, FeaturePlan: awscognito.FeaturePlan_ESSENTIALS,
		DeletionProtection: jsii.Bool(p.Keep), RemovalPolicy: removal(p.Keep),
	})
	var scopes []awscognito.ResourceServerScope
	add := func(name, about string) awscognito.ResourceServerScope {
		s := awscognito.NewResourceServerScope(&awscognito.ResourceServerScopeProps{ScopeName: jsii.String(name),
			ScopeDescription: jsii.String(about)})
		scopes = append(scopes, s)
		return s
	}
	can := []awscognito.ResourceServerScope{
		add("read", "Look at jobs, schedules and runs"), add("write", "Make and change them"),
		add("admin", "Tasks, pauses, redrive and purge"),
	}
	of := map[string]awscognito.ResourceServerScope{}
	for _, t := range p.Tenants {
		of[t] = add(TenantScope+t, "Act for the tenant "+t)
	}
	server := pool.AddResourceServer(jsii.String("Api"), &awscognito.UserPoolResourceServerOptions{
		Identifier: jsii.String(ResourceServer), UserPoolResourceServerName: jsii.String("Punctual"), Scopes: &scopes,
	})
	u := UserPool{pool: pool}
	for _, t := range p.Tenants {
		var allowed []awscognito.OAuthScope
		for _, s := range append(can[:len(can):len(can)], of[t]) {
			allowed = append(allowed, awscognito.OAuthScope_ResourceServer(server, s))
		}
		u.clients = append(u.clients, pool.AddClient(jsii.String("Client-"+t), &awscognito.UserPoolClientOptions{
			UserPoolClientName: jsii.String(t), GenerateSecret: jsii.Bool(true),
			AccessTokenValidity: awscdk.Duration_Hours(jsii.Number(1)), EnableTokenRevocation: jsii.Bool(true),
			PreventUserExistenceErrors: jsii.Bool(true),
			OAuth: &awscognito.OAuthSettings{Flows: &awscognito.OAuthFlows{ClientCredentials: jsii.Bool(true)},
				Scopes: &allowed},
		}))
	}
	u.domain = pool.AddDomain(jsii.String("Domain"), &awscognito.UserPoolDomainOptions{
		CognitoDomain: &awscognito.CognitoDomainOptions{
			DomainPrefix: awscdk.Fn_Join(jsii.String("-"),
				&[]*string{jsii.String(p.Name), awscdk.Stack_Of(pool).Account()}),
		},
	})
	return u
}

// Made is all parts of the pool, for dependencies.
func (u UserPool) Made() constructs.IDependable { return u.pool }

// Id is the pool's.
func (u UserPool) Id() *string { return u.pool.UserPoolId() }

// Issuer is the iss of its tokens.
func (u UserPool) Issuer() *string {
	return jsii.String("https://cognito-idp." + *awscdk.Stack_Of(u.pool).Region() + ".amazonaws.com/" +
		*u.pool.UserPoolId())
}

// Clients are the ids of its clients, separated by commas: the client_id of its tokens.
func (u UserPool) Clients() *string {
	ids := make([]string, len(u.clients))
	for i, c := range u.clients {
		ids[i] = *c.UserPoolClientId()
	}
	return jsii.String(strings.Join(ids, ","))
}

// TokenURL is where clients ask for tokens.
func (u UserPool) TokenURL() *string {
	return jsii.String("https://" + *u.domain.DomainName() + ".auth." + *awscdk.Stack_Of(u.pool).Region() +
		".amazoncognito.com/oauth2/token")
}
