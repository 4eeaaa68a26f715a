import { isBuiltin, parseBuiltin } from '../../modules/index.ts';
import { parseJson } from '../../values/index.ts';
import { BuiltinSettings, type RequestConstraints } from '../builtin-settings.ts';
import type { FieldRead } from '../cel-policy/expression-reads.ts';
import type { ModuleUse, PolicyDefinition } from '../definition/policy-definition.ts';

/** What the code of a policy, or of a member of a group, reads of a request. */
export interface ModuleReads {
  /** Of a group. */
  readonly member?: string;
  readonly module: string;
  /** Undefined: the module gets the whole request, and nobody knows what it reads of that. */
  readonly reads: readonly FieldRead[] | undefined;
  /** Whether it may read more, because parameters replace settings. */
  readonly readsMore?: boolean;
  /** The requests that the settings match, if they say so. */
  readonly constraints?: RequestConstraints | undefined;
}

const builtins = new BuiltinSettings();

/** What each module of a policy reads. Settings with mistakes read nothing: without parameters, the policy cannot be loaded. */
export function moduleReads(definition: PolicyDefinition): readonly ModuleReads[] {
  return definition.kind === 'policy'
    ? [{ module: definition.module, ...readsOf(definition) }]
    : definition.members.map((use) => ({ member: use.name, module: use.module, ...readsOf(use) }));
}

function readsOf({ module, settingsJson, parameters }: ModuleUse): Omit<ModuleReads, 'member' | 'module'> {
  if (!isBuiltin(module)) {
    return { reads: undefined };
  }
  const { problems, constraints, reads } = builtins.check(parseBuiltin(module), parseJson(settingsJson));
  const more = parameters === undefined ? {} : { readsMore: true };
  return problems.length > 0 ? { reads: [], ...more } : { constraints, reads: reads(), ...more };
}
