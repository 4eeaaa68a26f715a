import type { NetworkPolicy, ProviderSupport } from '../../engine/network-policy/index.ts';

/** What a reader of the results has to know: on standard error. */
export function printNotes(policies: readonly NetworkPolicy[], providers: readonly ProviderSupport[]): void {
  if (policies.length === 0) {
    process.stderr.write('no NetworkPolicies found\n');
  }
  for (const support of providers.filter(({ assumptions }) => assumptions.length > 0)) {
    process.stderr.write(`note: ${support.label} enforces NetworkPolicies if ${support.assumptions.join(' and ')}\n`);
  }
}
