package construct

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// GroupClaim is the claim of a person's access token that lists the groups that the person is in.
const GroupClaim = "cognito:groups"

// How long people's tokens are good. The page renews its token until the last has ended; then, or at a reload,
// its user signs in again. Cognito takes no less than 5 minutes and an hour.
const (
	tokenMinutes    = 15
	signedInMinutes = 12 * 60 // a shift
)

// UserPoolProps says for whom there are tokens.
type UserPoolProps struct {
	Name    string
	Server  string   // what Cognito writes before each scope, with a slash after it
	Tenant  string   // what precedes a tenant in the scope and the group that name it, after the server
	Tenants []string // each gets a group, and a client whose tokens are for that tenant and no other
	Keep    bool     // retain, and refuse deletion
}

// UserPool gives out tokens to programs, and to people at the console page. No one can sign up to it, and it sends
// no mail.
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
		of[t] = add(p.Tenant+t, "Act for the tenant "+t)
	}
	server := pool.AddResourceServer(jsii.String("Api"), &awscognito.UserPoolResourceServerOptions{
		Identifier: jsii.String(p.Server), UserPoolResourceServerName: jsii.String("Punctual"), Scopes: &scopes,
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
		pool.AddGroup(jsii.String("Group-"+t), &awscognito.UserPoolGroupOptions{
			GroupName:   jsii.String(p.Server + "/" + p.Tenant + t),
			Description: jsii.String("People of the tenant " + t),
		})
	}
	u.domain = pool.AddDomain(jsii.String("Domain"), &awscognito.UserPoolDomainOptions{
		CognitoDomain: &awscognito.CognitoDomainOptions{
			DomainPrefix: awscdk.Fn_Join(jsii.String("-"),
				&[]*string{jsii.String(p.Name), awscdk.Stack_Of(pool).Account()}),
		},
	})
	return u
}

// After has the pool and all its parts made after others.
func (u UserPool) After(others ...constructs.IDependable) { u.pool.Node().AddDependency(others...) }

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

// Origin is where people sign in and clients ask for tokens.
func (u UserPool) Origin() *string {
	return jsii.String("https://" + *u.domain.DomainName() + ".auth." + *awscdk.Stack_Of(u.pool).Region() +
		".amazoncognito.com")
}

// TokenURL is where clients ask for tokens.
func (u UserPool) TokenURL() *string { return jsii.String(*u.Origin() + "/oauth2/token") }

// NewPage makes a client with which people sign in at a page, and returns its id. The page keeps no secret: it
// proves by PKCE that it is who asked. The scopes name no tenant, for Cognito lets every user of the pool
// sign in at every client: what binds a person to a tenant is the group.
//
// It belongs to the stack of scope, which knows the page's addresses.
func (u UserPool) NewPage(scope constructs.Construct, id, name string, scopes []string, at ...*string) *string {
	asked := make([]awscognito.OAuthScope, len(scopes))
	for i, s := range scopes {
		asked[i] = awscognito.OAuthScope_Custom(jsii.String(s))
	}
	minutes := func(n float64) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }
	client := awscognito.NewUserPoolClient(scope, jsii.String(id), &awscognito.UserPoolClientProps{
		UserPool: u.pool, UserPoolClientName: jsii.String(name), GenerateSecret: jsii.Bool(false),
		AccessTokenValidity: minutes(tokenMinutes), IdTokenValidity: minutes(tokenMinutes),
		RefreshTokenValidity:  minutes(signedInMinutes),
		EnableTokenRevocation: jsii.Bool(true), PreventUserExistenceErrors: jsii.Bool(true),
		// Named, the ways that bring no code are refused; left out, Cognito allows two of them.
		AuthFlows: &awscognito.AuthFlow{UserSrp: jsii.Bool(false), Custom: jsii.Bool(false)},
		SupportedIdentityProviders: &[]awscognito.UserPoolClientIdentityProvider{
			awscognito.UserPoolClientIdentityProvider_COGNITO()},
		OAuth: &awscognito.OAuthSettings{Flows: &awscognito.OAuthFlows{AuthorizationCodeGrant: jsii.Bool(true)},
			Scopes: &asked, CallbackUrls: &at, LogoutUrls: &at},
	})
	return client.UserPoolClientId()
}
