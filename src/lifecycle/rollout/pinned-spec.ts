// The spec of a policy with its modules pinned: what is written back by a rollback, so that a tag that has moved since does
// not matter.
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPolicySpec, isGroupSpec } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';
import type { RevisionFacts } from './rollout-view.ts';

const SHA256 = 'sha256:';

/**
 * The spec with `@sha256:…` behind each reference that names no digest. Builtin modules are the product's own version.
 *
 * @param modules as they were found: of a group by the names of its members
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
  const digest = modules.find(({ module }) => module === reference)?.digest ?? '';
  return digest.startsWith(SHA256) && !reference.includes(`@${SHA256}`) ? `${reference}@${digest}` : reference;
}

/**
 * The newest revision that was once found good and whose spec, pinned, this is: the one that was gone back to. An earlier
 * spec that names digests, or builtin modules only, and is applied again by hand counts as well: it is the same.
 */
export function rollbackOf(spec: AdmissionPolicySpec, revisions: readonly RevisionFacts[]): number | undefined {
  return revisions.findLast(
    ({ snapshot, modules }) => modules.length > 0 && isDeepStrictEqual(pinnedSpec(snapshot, modules), spec),
  )?.number;
}
