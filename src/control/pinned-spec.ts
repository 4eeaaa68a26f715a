// The spec of a policy with its modules pinned by digest, so that a moved tag has no effect. A rollback writes it, and replicas
// load modules of registries by it.
import { isJsonObject, type JsonObject, own } from '../resources/index.ts';
import { isDigest, withDigest } from '../modules/index.ts';
import type { PinnedModule } from './replica-protocol.ts';

/**
 * Appends `@sha256:…` to each module reference without a digest. References to builtin modules stay. A spec of another shape
 * stays as it is.
 *
 * @param modules the resolved modules, in a group by the name of the member
 */
export function pinnedSpec<Spec>(spec: Spec, modules: readonly PinnedModule[]): Spec {
  if (modules.length === 0 || !isJsonObject(spec)) {
    return spec;
  }
  const members = own(spec, 'policies');
  if (!isJsonObject(members)) {
    return pinnedPolicy(spec, modules);
  }
  const policies = Object.entries(members).map(([member, policy]) => [
    member,
    isJsonObject(policy)
      ? pinnedPolicy(
          policy,
          modules.filter(({ name }) => name === member),
        )
      : policy,
  ]);
  return { ...spec, policies: Object.fromEntries(policies) as JsonObject };
}

function pinnedPolicy<Policy extends JsonObject>(policy: Policy, modules: readonly PinnedModule[]): Policy {
  const reference = own(policy, 'module');
  return typeof reference === 'string' ? { ...policy, module: pinned(reference, modules) } : policy;
}

function pinned(reference: string, modules: readonly PinnedModule[]): string {
  const module = modules.find((one) => one.module === reference);
  // In a registry, a reference names a manifest by its digest, not the module.
  const pin = module?.manifest ?? module?.digest;
  return isDigest(pin) ? withDigest(reference, pin) : reference;
}
