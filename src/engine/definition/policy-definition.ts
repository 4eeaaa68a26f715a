import { createHash } from 'node:crypto';
import { parseJson } from '../../values/index.ts';
import { canonicalJson } from '../values/json-text.ts';
import type { ContextAwareResource, PodTemplatesAction } from '../../resources/index.ts';
import type { ParametersDefinition } from '../parameters/parameters-definition.ts';

/** `protect` enforces verdicts; `monitor` only logs them and allows everything. */
export type PolicyMode = 'protect' | 'monitor';
/** The answer of a policy that cannot give a verdict: a denial, or an admission with a warning. */
export type FailurePolicy = 'Fail' | 'Ignore';

/** A module with its settings and rights: the common part of single policies and members of groups. */
export interface ModuleUse {
  /** Reference of the module, as in the manifest. */
  readonly module: string;
  /**
   * JSON text of an object; `{}` when `settings` is missing or null. Text, because threads copy a definition several
   * times, and a copied object with keys such as `1000` takes a thousand times its text.
   */
  readonly settingsJson: string;
  readonly contextAwareResources: readonly ContextAwareResource[];
  /** Seconds for one evaluation. Default: the server's. */
  readonly timeoutEvalSeconds?: number;
  /** How data of namespaces override settings. Default: the settings are those of every request. */
  readonly parameters?: ParametersDefinition;
  /** Patterns `*`, `ns/*`, `ns/v1/*`, or a capability's exact path. Empty allows only tracing. */
  readonly hostCapabilities: readonly string[];
}

export interface SinglePolicyDefinition extends ModuleUse {
  readonly kind: 'policy';
  readonly id: string;
  readonly mode: PolicyMode;
  readonly allowedToMutate: boolean;
  /** Replaces the text of a denial; the original moves to `status.details.causes`. */
  readonly message?: string;
  readonly failurePolicy: FailurePolicy;
  /** Default: pod templates of workloads are not checked. */
  readonly podTemplates?: PodTemplatesAction;
}

export interface GroupMemberDefinition extends ModuleUse {
  readonly name: string;
}

interface PolicyGroupDefinition {
  readonly kind: 'group';
  readonly id: string;
  readonly mode: PolicyMode;
  readonly expression: string;
  /** The text of the group's denials. */
  readonly message: string;
  readonly members: readonly GroupMemberDefinition[];
  readonly failurePolicy: FailurePolicy;
  /** As in SinglePolicyDefinition. */
  readonly podTemplates?: PodTemplatesAction;
}

/** One entry of the policies file: plain data, structured-cloneable. */
export type PolicyDefinition = SinglePolicyDefinition | PolicyGroupDefinition;

/** SHA-256 (hex) of a definition: equal exactly when nothing changed. */
export function definitionHash(definition: PolicyDefinition): string {
  const parts =
    definition.kind === 'policy'
      ? withSettings(definition)
      : { ...definition, members: definition.members.map(withSettings) };
  return sha256(canonicalJson(parts));
}

function withSettings({ settingsJson, ...rest }: ModuleUse): object {
  return { ...rest, settings: parseJson(settingsJson) };
}

/** SHA-256 (hex) of the settings, or for a group of all members' settings by name. */
export function settingsHash(definition: PolicyDefinition): string {
  const settings =
    definition.kind === 'policy'
      ? parseJson(definition.settingsJson)
      : Object.fromEntries(definition.members.map((member) => [member.name, parseJson(member.settingsJson)]));
  return sha256(canonicalJson(settings));
}

/** A policy alone, or the members of a group. */
export function moduleUses(definition: PolicyDefinition): readonly ModuleUse[] {
  return definition.kind === 'policy' ? [definition] : definition.members;
}

/** References of all modules in a definition, without duplicates. */
export function modulesOf(definition: PolicyDefinition): string[] {
  return [...new Set(moduleUses(definition).map(({ module }) => module))];
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
