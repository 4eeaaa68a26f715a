// The spec of a policy with its modules pinned by digest. A rollback writes it, so that a moved tag has no effect.
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPolicySpec, isGroupSpec } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';
import type { RevisionFacts } from './rollout-view.ts';

const SHA256 = 'sha256:';

/**
 * Appends `@sha256:…` to each module reference without a digest. References to builtin modules stay.
 *
 * @param modules the resolved modules, in a group by the name of the member
 */
export function pinnedSpec(spec: AdmissionPolicySpec, modules: readonly PinnedModule[]): AdmissionPolicySpec {
  if (!isGroupSpec(spec)) {
    return { ...spec, module: pinned(spec.module, modules) };
  }
  const members = Object.entries(spec.policies).map(([member, policy]) => {
    const own = modules.filter(({ name }) => name === member);
    return [member, { ...policy, module: pinned(policy.module, own) }];
  });
  return { ...spec, policies: Object.fromEntries(members) as typeof spec.policies };
}

function pinned(reference: string, modules: readonly PinnedModule[]): string {
  const module = modules.find((one) => one.module === reference);
  // In a registry, a reference names a manifest by its digest, not the module.
  const pin = module?.manifest ?? module?.digest ?? '';
  return pin.startsWith(SHA256) && !reference.includes(`@${SHA256}`) ? `${reference}@${pin}` : reference;
}

/**
 * The revision that a spec rolls back to: the newest validated revision whose pinned spec equals it. Undefined if there
 * is none. Applying the same spec by hand counts as well.
 */
export function rollbackOf(spec: AdmissionPolicySpec, revisions: readonly RevisionFacts[]): number | undefined {
  return revisions.findLast(
    ({ snapshot, modules }) => modules.length > 0 && isDeepStrictEqual(pinnedSpec(snapshot, modules), spec),
  )?.number;
}
