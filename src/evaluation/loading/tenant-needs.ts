// What a policy of a namespace needs, and what policies of namespaces may not use.
import { BuiltinSettings, isGranted, type ModuleUse, type PolicyDefinition } from '../../engine/index.ts';
import { parseJson, shortened } from '../../values/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { PolicyReason } from './policy-reason.ts';

/** Namespace of the capability that every policy has. */
const TRACING = 'tracing/';
/** Characters of a message about capabilities, whose names come from a module. */
const MAX_MESSAGE_CHARACTERS = 500;

export interface TenantRefusal {
  readonly reason: PolicyReason;
  readonly message: string;
  /** The id of the policy, or `group/member`. */
  readonly unit: string;
}

const builtins = new BuiltinSettings();

/** Why policies of namespaces may not use what a policy needs: by the metadata of its modules, or by its expressions. */
export function tenantRefusal(
  definition: PolicyDefinition,
  modules: ReadonlyMap<string, CompiledPolicyModule>,
): TenantRefusal | undefined {
  const units =
    definition.kind === 'policy'
      ? [{ unit: definition.id, use: definition }]
      : definition.members.map((use) => ({ unit: `${definition.id}/${use.name}`, use }));
  for (const { unit, use } of units) {
    const refusal = refusalOf(use, modules.get(use.module));
    if (refusal !== undefined) {
      return { ...refusal, message: shortened(refusal.message, MAX_MESSAGE_CHARACTERS), unit };
    }
  }
  return undefined;
}

function refusalOf(
  { settingsJson, hostCapabilities }: ModuleUse,
  module: CompiledPolicyModule | undefined,
): Omit<TenantRefusal, 'unit'> | undefined {
  let needed = module?.hostCapabilities ?? [];
  if (module?.mode === 'builtin' && settingsJson.includes('authorizer')) {
    const { needs } = builtins.check(module.name, parseJson(settingsJson));
    const account = needs.find(({ right }) => right === 'authorize-account');
    if (account !== undefined) {
      const message = `${account.field}: policies of namespaces learn only what the user of the request may do: remove the call of serviceAccount`;
      return { reason: 'InvalidSettings', message };
    }
    needed = needs.some(({ right }) => right === 'authorize') ? ['kubernetes/can_i'] : needed;
  }
  const missing = notGranted(needed, hostCapabilities);
  const names = missing.map((one) => `"${one}"`).join(', ');
  return missing.length === 0
    ? undefined
    : {
        reason: 'CapabilityNotGranted',
        message: `the policy needs host capabilities that its PolicyServer does not grant to policies of namespaces: add ${names} to spec.namespacedPoliciesCapabilities of the PolicyServer. That replaces its pods; portcullis start must be started again`,
      };
}

/** The host capabilities that are not granted, without those that every policy has. */
export function notGranted(names: readonly string[], granted: readonly string[]): readonly string[] {
  return names.filter((one) => !one.startsWith(TRACING) && !isGranted(one, granted));
}
