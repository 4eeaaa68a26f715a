// The spec of a policy with its modules pinned: what is written back by a rollback, so that a tag that has moved since does
// not matter.
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionPolicySpec, isGroupSpec } from '../../resources/index.ts';
import type { PinnedModule } from '../../server/index.ts';
import type { RevisionFacts } from './rollout-view.ts';

/** The spec with `@sha256:…` behind each reference that names no digest. Builtin modules are the product's own version. */
export function pinnedSpec(spec: AdmissionPolicySpec, modules: readonly PinnedModule[]): AdmissionPolicySpec {
  const digests = new Map(modules.map(({ module, digest }) => [module, digest]));
  const pinned = (module: string): string => {
    const digest = digests.get(module);
    return digest === undefined || !digest.startsWith('sha256:') || module.endsWith(`@${digest}`)
      ? module
      : `${module}@${digest}`;
  };
  if (!isGroupSpec(spec)) {
    return { ...spec, module: pinned(spec.module) };
  }
  const members = Object.entries(spec.policies).map(([name, member]) => [
    name,
    { ...member, module: pinned(member.module) },
  ]);
  return { ...spec, policies: Object.fromEntries(members) as typeof spec.policies };
}

/** The newest revision before the last whose spec this is, pinned: the one that was gone back to. */
export function rollbackOf(spec: AdmissionPolicySpec, revisions: readonly RevisionFacts[]): number | undefined {
  return revisions
    .slice(0, -1)
    .findLast(({ snapshot, modules, order }) => order > 0 && isDeepStrictEqual(pinnedSpec(snapshot, modules), spec))
    ?.number;
}
