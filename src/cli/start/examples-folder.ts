import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder `examples/` of the package. */
export const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));

/** Folders of the example policies that a new cluster gets. */
export const POLICY_EXAMPLES: readonly string[] = [
  'container-limits',
  'cost-center',
  'default-seccomp',
  'host-namespaces',
  'image-registries',
  'namespace-owner',
  'pod-privileged',
  'pod-security',
  'privileged-by-exception',
  'replica-limit',
  'required-labels',
  'toolforge',
];

/** Files with these policies, after the namespaces to which they apply. */
export const POLICY_EXAMPLE_FILES: readonly string[] = [
  join(EXAMPLES, 'namespace.yaml'),
  join(EXAMPLES, 'toolforge', 'namespaces.yaml'),
  ...POLICY_EXAMPLES.map((name) => join(EXAMPLES, name, 'policy.yaml')),
];

/** Objects from before the policies, which these would reject. */
export const EXISTING_OBJECTS_EXAMPLE = join(EXAMPLES, 'existing-objects', 'old-shop.yaml');

/** A stand-in for a network provider, and a NetworkPolicy that it supports in part. */
export const NETWORK_POLICY_EXAMPLE = join(EXAMPLES, 'network-policy', 'cluster.yaml');

/** Policies of governance that wait for each other. */
export const GOVERNANCE_EXAMPLE = join(EXAMPLES, 'governance', 'kafka.yaml');
