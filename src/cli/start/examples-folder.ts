import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder `examples/` of the package. */
export const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));

const MANIFESTS = join(EXAMPLES, 'manifests');
const TOOLFORGE = join(EXAMPLES, 'toolforge');

/** Example policies for a cluster, after the namespaces to which they apply. */
export const POLICY_EXAMPLES: readonly string[] = [
  join(MANIFESTS, 'namespace.yaml'),
  join(TOOLFORGE, 'namespaces.yaml'),
  MANIFESTS,
  join(TOOLFORGE, 'policy.yaml'),
];

/** A stand-in for a network provider, and a NetworkPolicy that it supports in part. */
export const NETWORK_POLICY_EXAMPLE = join(EXAMPLES, 'network-policy', 'cluster.yaml');

/** Policies of governance that wait for each other. */
export const GOVERNANCE_EXAMPLE = join(EXAMPLES, 'governance', 'kafka.yaml');
