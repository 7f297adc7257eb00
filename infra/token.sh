#!/bin/sh
# Prints an access token of a tenant, from the user pool that auth=cognito made. It asks with your
# AWS credentials for the secret of the tenant's client, and the pool for the token; it lasts an hour.
# usage: token.sh TARGET REGION SETTINGS TENANT SCOPES
target=$1 region=$2 settings=$3 tenant=$4 scopes=$5
fail() {
	echo "token: $1" >&2
	exit 1
}
case $target in
dev) prefix=punctual-dev ;;
*) prefix=punctual ;;
esac
for setting in $settings; do
	case $setting in
	prefix=*) prefix=${setting#prefix=} ;;
	esac
done
[ -n "$tenant" ] || fail "TENANT is not set: one of those that SETTINGS='tenants=…' named at the deploy"
for tool in aws curl; do
	command -v $tool >/dev/null 2>&1 || fail "$tool is not here, and the token is asked for with it"
done
output() {
	aws cloudformation describe-stacks --region "$region" --stack-name "$prefix-data" --output text \
		--query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue"
}
pool=$(output UserPool) || fail "the stack $prefix-data cannot be read"
[ -n "$pool" ] || fail "$prefix-data has no user pool: it was deployed without auth=cognito; ask your identity provider for a token"
client=$(aws cognito-idp list-user-pool-clients --region "$region" --user-pool-id "$pool" --max-results 60 --output text \
	--query "UserPoolClients[?ClientName=='$tenant'].ClientId") || fail "the clients of $pool cannot be listed"
[ -n "$client" ] || fail "$pool has no client of tenant $tenant: deploy with it among SETTINGS='tenants=…'"
secret=$(aws cognito-idp describe-user-pool-client --region "$region" --user-pool-id "$pool" --client-id "$client" \
	--output text --query UserPoolClient.ClientSecret) || fail "the secret of the client cannot be read"
asked=punctual/tenant.$tenant
for scope in $scopes; do
	asked="$asked punctual/${scope#punctual:}"
done
# The secret goes by standard input: a command line is anybody's to read.
answer=$(printf 'user = "%s:%s"\n' "$client" "$secret" | curl -sS --config - --data-urlencode grant_type=client_credentials \
	--data-urlencode "scope=$asked" "$(output TokenUrl)") || fail "the token endpoint does not answer"
token=$(printf '%s' "$answer" | sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')
[ -n "$token" ] || fail "no token was given: $answer"
printf '%s\n' "$token"
