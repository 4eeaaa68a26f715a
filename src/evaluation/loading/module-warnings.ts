// Warnings about needs that modules declare and their policy does not grant. Many modules need them with some settings only, so
// the policy is loaded nevertheless.
import type { ModuleUse, PolicyDefinition } from '../../engine/index.ts';
import { MAX_WARNING_LENGTH, MAX_WARNINGS } from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import { notGranted } from './tenant-needs.ts';

/** A module of a policy, or of a member of a group. */
interface Unit {
  readonly use: ModuleUse;
  /** Start of a warning: whose module it is about. */
  readonly subject: string;
  readonly mayMutate: boolean;
  /** What to write to let it change objects. */
  readonly mutatingAdvice: string;
}

/**
 * Warnings that a policy may reject requests because it does not grant what the metadata of its modules state.
 *
 * @param isForTenant whether it is a policy of a namespace: those may read no objects, and are refused without their capabilities
 */
export function moduleWarnings(
  definition: PolicyDefinition,
  modules: ReadonlyMap<string, CompiledPolicyModule>,
  isForTenant: boolean,
): readonly string[] {
  return unitsOf(definition)
    .flatMap((unit) => warningsOf(unit, modules.get(unit.use.module), isForTenant))
    .slice(0, MAX_WARNINGS)
    .map((text) => shortened(text, MAX_WARNING_LENGTH));
}

function unitsOf(definition: PolicyDefinition): readonly Unit[] {
  if (definition.kind === 'policy') {
    const { allowedToMutate } = definition;
    const mutatingAdvice = 'if its settings let it change objects, set mutating: true';
    return [{ use: definition, subject: 'the module', mayMutate: allowedToMutate, mutatingAdvice }];
  }
  const mutatingAdvice =
    'members of groups may not; if its settings let it change objects, make it a policy of its own';
  return definition.members.map((use) => ({
    use,
    subject: `the module of member ${JSON.stringify(use.name)}`,
    mayMutate: false,
    mutatingAdvice,
  }));
}

function warningsOf(unit: Unit, module: CompiledPolicyModule | undefined, isForTenant: boolean): readonly string[] {
  const { use, subject, mayMutate, mutatingAdvice } = unit;
  const { isMutating = false, contextAwareResources = [], hostCapabilities = [] } = module ?? {};
  const kinds = contextAwareResources.filter(
    ({ apiVersion, kind }) =>
      !use.contextAwareResources.some((granted) => granted.apiVersion === apiVersion && granted.kind === kind),
  );
  const capabilities = isForTenant ? [] : notGranted(hostCapabilities, use.hostCapabilities);
  const advice = isForTenant ? 'which policies of a namespace may not' : 'add what it needs to contextAwareResources';
  return [
    ...(isMutating && !mayMutate ? [`${subject} changes objects: ${mutatingAdvice}`] : []),
    ...(kinds.length === 0
      ? []
      : [`${subject} reads ${quotedList(kinds.map(({ apiVersion, kind }) => `${apiVersion}/${kind}`))}: ${advice}`]),
    ...(capabilities.length === 0
      ? []
      : [`${subject} uses host capabilities: add ${quotedList(capabilities)} to hostCapabilities`]),
  ];
}

function quotedList(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(', ');
}
