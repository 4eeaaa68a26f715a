// An entry of its own for who grants rights and has no control port.
export { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES, REPLICA_RULES } from './replica-rules.ts';
