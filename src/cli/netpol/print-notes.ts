import type { ProviderSupport } from '../../engine/network-policy/index.ts';
import { oneLine } from '../table.ts';
import type { InputPolicy } from './policy-flags.ts';

/** What a reader of the results has to know: on standard error. */
export function printNotes(policies: readonly InputPolicy[], providers: readonly ProviderSupport[]): void {
  if (policies.length === 0) {
    process.stderr.write('no NetworkPolicies found\n');
  }
  for (const support of providers.filter(({ assumptions }) => assumptions.length > 0)) {
    process.stderr.write(`note: ${support.label} enforces NetworkPolicies if ${support.assumptions.join(' and ')}\n`);
  }
}

/** Prints why API servers refuse policies: on standard error. Returns whether they refuse one. */
export function printRefusals(policies: readonly InputPolicy[]): boolean {
  const refused = policies.filter(({ refusals }) => refusals.length > 0);
  for (const { policy, refusals, placeOf } of refused) {
    for (const { path, message } of refusals) {
      const place = placeOf?.(path);
      const start = place === undefined ? '' : `${place.file}:${place.line}: `;
      process.stderr.write(
        `${oneLine(`error: ${start}API servers refuse ${policy.namespace}/${policy.name}: ${message}`)}\n`,
      );
    }
  }
  return refused.length > 0;
}
