// Package construct builds the parts that the stacks are composed of, one capability each:
// tables, queues, timers, functions, the REST door, ticks, and the fleet.
//
// What always holds: a part is safe by default: encrypted with the deployment's key, reached by TLS only, kept if its
// data is to be kept, with logs that expire. A role begins without rights; a part grants one verb to one role
// (GrantSend, GrantQuery), never a managed policy, never the action `*`, and the resource `*` only if AWS offers
// nothing else.
//
// The ids of stateful parts are a contract: CloudFormation takes another id for another
// resource, and would make a new, empty table. A test of package stack pins them.
//
// Never range over a map here: the template must come out the same each time.
package construct
