import type { CapabilityHolder } from './host-capabilities.ts';
import type { HostPort, PolicyLog } from './host-port.ts';
import { parseGroupExpression } from './group-expression.ts';
import type { GroupExpression } from './group-expression.ts';
import type {
  ContextAwareResource,
  FailurePolicy,
  ModuleUse,
  PolicyDefinition,
  PolicyMode,
} from './policy-definition.ts';
import type { PolicyGuest } from './policy-guest.ts';

/** Where policies of one thread run: keep one such object for all of them. */
export interface PolicyOptions {
  /** Answers host capabilities that a policy was granted. */
  readonly port: HostPort;
  /** Receives what policies log, what monitored ones would have done, and failures of guests. */
  readonly log: PolicyLog;
  /** Seconds for one evaluation of policies that do not say. Default {@link DEFAULT_TIMEOUT_SECONDS}. */
  readonly defaultTimeoutSeconds?: number;
  /** Requests for objects of this namespace are allowed without asking. Default none. */
  readonly alwaysAcceptNamespace?: string;
}

/** Time for one evaluation when neither policy nor server says otherwise. Kubewarden's default as well. */
export const DEFAULT_TIMEOUT_SECONDS = 2;

/** Code and settings that can be asked for a verdict: a single policy, or one member of a group. */
export interface EvaluationUnit extends CapabilityHolder {
  readonly guest: PolicyGuest;
  /** Handed to the guest as it is. */
  readonly settingsJson: string;
  /** Seconds that one evaluation may take. */
  readonly timeoutSeconds: number;
}

interface LoadedBase {
  readonly id: string;
  readonly mode: PolicyMode;
  readonly failurePolicy: FailurePolicy;
  readonly options: PolicyOptions;
}

export interface LoadedSinglePolicy extends LoadedBase {
  readonly kind: 'policy';
  readonly allowedToMutate: boolean;
  readonly message: string | undefined;
  readonly unit: EvaluationUnit;
}

export interface LoadedPolicyGroup extends LoadedBase {
  readonly kind: 'group';
  readonly message: string;
  readonly expression: GroupExpression;
  /** By the member's name, in the order of the definition. */
  readonly members: ReadonlyMap<string, EvaluationUnit>;
}

/** A policy of which no version could ever be loaded. It still answers. */
export interface FailedPolicy extends LoadedBase {
  readonly kind: 'failed';
  /** Why, for whoever is rejected. */
  readonly message: string;
}

/** What a policy id stands for in a thread that evaluates. */
export type LoadedPolicy = LoadedSinglePolicy | LoadedPolicyGroup | FailedPolicy;

const NOTHING: readonly never[] = Object.freeze([]);
const EVERYTHING: readonly string[] = Object.freeze(['*']);

/**
 * Makes a definition ready to be evaluated. `guests` gives the guest of a module as the definition names it; one guest
 * serves any number of policies. Does not look at the settings: see `checkSettings`. Throws `expression-invalid`, and
 * what `guests` throws.
 */
export function createPolicy(
  definition: PolicyDefinition,
  guests: (module: string) => PolicyGuest,
  options: PolicyOptions,
): LoadedPolicy {
  const { id, mode, failurePolicy } = definition;
  const base = { id, mode, failurePolicy, options };
  if (definition.kind === 'policy') {
    const { allowedToMutate, message } = definition;
    return { kind: 'policy', ...base, allowedToMutate, message, unit: createUnit(id, definition, guests, options) };
  }
  const members = new Map(
    definition.members.map((member) => [member.name, createUnit(`${id}/${member.name}`, member, guests, options)]),
  );
  const expression = parseGroupExpression(definition.expression, new Set(members.keys()));
  return { kind: 'group', ...base, message: definition.message, expression, members };
}

/** What answers for a policy that has no good version: a rejection, or an admission with a warning. */
export function createFailedPolicy(
  failure: {
    readonly id: string;
    readonly message: string;
    /** Default Fail. */
    readonly failurePolicy?: FailurePolicy;
    /** Only for metrics: monitor mode does not admit what no policy looked at. Default protect. */
    readonly mode?: PolicyMode;
  },
  options: PolicyOptions,
): FailedPolicy {
  const { id, message, failurePolicy = 'Fail', mode = 'protect' } = failure;
  return { kind: 'failed', id, mode, failurePolicy, message, options };
}

/** The units of a policy, each once. */
export function unitsOf(policy: LoadedPolicy): EvaluationUnit[] {
  switch (policy.kind) {
    case 'policy':
      return [policy.unit];
    case 'group':
      return [...policy.members.values()];
    case 'failed':
      return [];
    default:
      return policy satisfies never;
  }
}

/** Thousands of policies share a module: what is the same for most of them is one object, and settings are only text. */
function createUnit(
  id: string,
  use: ModuleUse,
  guests: (module: string) => PolicyGuest,
  options: PolicyOptions,
): EvaluationUnit {
  return {
    id,
    guest: guests(use.module),
    settingsJson: JSON.stringify(use.settings),
    timeoutSeconds: use.timeoutEvalSeconds ?? options.defaultTimeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
    hostCapabilities: sharedCapabilities(use.hostCapabilities),
    contextAwareResources: sharedResources(use.contextAwareResources),
  };
}

function sharedCapabilities(patterns: readonly string[]): readonly string[] {
  if (patterns.length === 0) {
    return NOTHING;
  }
  return patterns.includes('*') ? EVERYTHING : patterns;
}

function sharedResources(resources: readonly ContextAwareResource[]): readonly ContextAwareResource[] {
  return resources.length === 0 ? NOTHING : resources;
}
