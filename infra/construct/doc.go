// Package construct builds the parts that the stacks are composed of, one capability each:
// tables, queues, timers, functions, the REST door, ticks, and the fleet.
//
// What always holds: a part is safe without being told so — encrypted with the deployment's
// key, reached by TLS only, kept when data is to be kept, logging with an end. Roles begin with
// nothing; a part grants one verb to one role (GrantSend, GrantQuery), never a managed policy
// and never an action or, but where AWS offers nothing else, a resource by `*`.
//
// The ids of stateful parts are a contract: CloudFormation takes another id for another
// resource, and would make a new, empty table. A test of package stack pins them.
//
// Never range over a map here: the template must come out the same each time.
package construct
