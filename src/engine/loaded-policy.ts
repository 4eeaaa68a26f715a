import type { ContextAwareResource, PodTemplatesAction } from '../resources/index.ts';
import { DEFAULT_TIMEOUT_SECONDS } from './definition/limits.ts';
import type { CapabilityHolder } from './host-capabilities.ts';
import type { HostPort, PolicyLog } from './capabilities/host-port.ts';
import { parseGroupExpression } from './definition/group-expression.ts';
import type { GroupExpression } from './definition/group-expression.ts';
import type { ParameterizedSettings } from './parameters/effective-settings.ts';
import type { ExceptionTable } from './exceptions/exception-table.ts';
import { parameterizedSettings } from './parameters/load-settings.ts';
import type { ValidationBudget } from './parameters/validation-budget.ts';
import type { FailurePolicy, ModuleUse, PolicyDefinition, PolicyMode } from './definition/policy-definition.ts';
import type { PolicyGuest } from './guests/index.ts';

/** Options shared by all policies of one thread. */
export interface PolicyOptions {
  /** Answers host calls of policies. */
  readonly port: HostPort;
  /** Receives log lines of policies, and failures of guests. */
  readonly log: PolicyLog;
  /** Seconds for one evaluation of policies without a timeout. Default {@link DEFAULT_TIMEOUT_SECONDS}. */
  readonly defaultTimeoutSeconds?: number;
  /** Requests for objects of this namespace are allowed without an evaluation. Default none. */
  readonly alwaysAcceptNamespace?: string;
  /** Limits how long settings from parameters are validated. Default: each time as long as the policy's timeout allows. */
  readonly validationBudget?: ValidationBudget;
  /** Exceptions of the cluster, which may change. Default: none. */
  readonly exceptions?: ExceptionTable;
}

/** Code with settings: a single policy, or one member of a group. */
export interface EvaluationUnit extends CapabilityHolder {
  readonly guest: PolicyGuest;
  /** Passed to the guest unchanged, unless there are parameters. */
  readonly settingsJson: string;
  /** The settings for each namespace; undefined when all have the same. */
  readonly parameters?: ParameterizedSettings;
  /** Seconds that one evaluation may take. */
  readonly timeoutSeconds: number;
}

interface LoadedBase {
  readonly id: string;
  readonly mode: PolicyMode;
  readonly failurePolicy: FailurePolicy;
  /** For evaluation by id: in a bucket, the policy's match decides. */
  readonly podTemplates?: PodTemplatesAction;
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
  /** By name, in the order of the definition. */
  readonly members: ReadonlyMap<string, EvaluationUnit>;
}

/** A policy without a version that could be loaded. It still gives an answer. */
export interface FailedPolicy extends LoadedBase {
  readonly kind: 'failed';
  /** The reason, for clients whose requests are rejected. */
  readonly message: string;
}

/** A policy of a thread that evaluates. */
export type LoadedPolicy = LoadedSinglePolicy | LoadedPolicyGroup | FailedPolicy;

const NOTHING: readonly never[] = Object.freeze([]);
const EVERYTHING: readonly string[] = Object.freeze(['*']);

/**
 * Prepares a definition for evaluation. `guests` returns the guest of a module reference; one guest serves any number
 * of policies. Settings are not checked, see `checkSettings`. Throws `expression-invalid`, and what `guests` throws.
 */
export function createPolicy(
  definition: PolicyDefinition,
  guests: (module: string) => PolicyGuest,
  options: PolicyOptions,
): LoadedPolicy {
  const { id, mode, failurePolicy, podTemplates } = definition;
  const base = { id, mode, failurePolicy, options, ...(podTemplates === undefined ? {} : { podTemplates }) };
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

/** Stands for a policy without a loadable version: it rejects, or admits with a warning. */
export function createFailedPolicy(
  failure: {
    readonly id: string;
    readonly message: string;
    /** Default Fail. */
    readonly failurePolicy?: FailurePolicy;
    /** Only for metrics: monitor mode does not admit requests without an evaluation. Default protect. */
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

/** Thousands of policies share a module, so equal parts are shared objects and settings stay text. */
function createUnit(
  id: string,
  use: ModuleUse,
  guests: (module: string) => PolicyGuest,
  options: PolicyOptions,
): EvaluationUnit {
  const { parameters, settingsJson } = use;
  return {
    id,
    guest: guests(use.module),
    settingsJson,
    ...(parameters === undefined ? {} : { parameters: parameterizedSettings(parameters, settingsJson) }),
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
