import { valueAt } from '../../values/index.ts';
import { CheckedValue } from './checked-value.ts';
import { cidrWarnings } from './cidr-warnings.ts';

/** What API servers warn of in a NetworkPolicy that they accept. */
export function networkPolicyWarnings(policy: unknown): readonly string[] {
  const spec = new CheckedValue(valueAt(policy, 'spec'), 'spec');
  const peers = [['ingress', 'from'] as const, ['egress', 'to'] as const].flatMap(([direction, field]) =>
    spec.at(direction).items.flatMap((rule) => rule.at(field).items),
  );
  return peers
    .map((peer) => peer.at('ipBlock'))
    .flatMap((block) => [block.at('cidr'), ...block.at('except').items])
    .flatMap(({ value, path }) => cidrWarnings(value, path));
}
