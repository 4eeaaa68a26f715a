import { type MatchRule, type MatchSelector, NAMESPACE_NAME_LABEL, type PolicyMatch } from '../../resources/index.ts';
import { parseJson, textOf } from '../../values/index.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { loadManifests } from './manifests.ts';
import { readSettings, withCamelKeys } from './read-policy.ts';

export interface ExportOptions {
  /** Name of the policy and its binding. */
  readonly name: string;
  /** Minor version of the target API server. Default: the newest known. */
  readonly kubernetesVersion?: number;
  /** Whether the policy is in monitor mode: the binding then warns and audits instead of denying. Default: false. */
  readonly monitors?: boolean;
  /** Replaces the message of every denial (a policy's `message`). Default: none. */
  readonly message?: string;
  /** The requests that the policy matches, besides what its settings say. Default: all. */
  readonly requests?: ExportedRequests;
  /** Whether the policy checks pod templates of workloads. Default: false. */
  readonly checksPodTemplates?: boolean;
}

/** The requests of a policy of one of our kinds. */
export interface ExportedRequests extends Pick<
  PolicyMatch,
  'rules' | 'matchPolicy' | 'failurePolicy' | 'matchConditions'
> {
  /** The namespace of a namespaced policy. */
  readonly namespace?: string;
  readonly namespaceSelector?: MatchSelector;
  readonly objectSelector?: MatchSelector;
}

export interface ExportedPolicy {
  /** The policy and its binding. Empty when the settings cannot be parsed. */
  readonly manifests: readonly JsonObject[];
  /** Settings that manifests cannot express, or that an API server would reject. */
  readonly problems: readonly FieldProblem[];
}

const API_VERSION = 'admissionregistration.k8s.io/v1';
/** Minor versions since which API servers serve mutating policies as v1 and as v1beta1. */
const MUTATING_V1_SINCE = 36;
const MUTATING_V1BETA1_SINCE = 34;

const EVERYTHING: JsonObject = {
  resourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources: ['*'] }],
};

/** Converts settings of `builtin:cel` to manifests that API servers evaluate themselves. Never throws. */
export function exportPolicy(settings: unknown, options: ExportOptions): ExportedPolicy {
  const problems: FieldProblem[] = [];
  const { spec } = readSettings(settings, problems);
  if (problems.length > 0 || !isJsonObject(settings)) {
    return { manifests: [], problems: problems };
  }
  const isMutating = spec.kind === 'mutating';
  const fields = normalised(settings);
  const { paramRef, ...own } = fields;
  const { requests } = options;
  if (spec.matchConstraints === undefined && requests === undefined) {
    const text =
      'the settings do not say which resources the policy is for, and the exported one is for all that are created or updated: set matchConstraints';
    problems.push({ field: 'matchConstraints', message: text });
  }
  if (isMutating && options.monitors === true) {
    problems.push({
      field: '',
      message: 'a mutating policy of an API server cannot be made to only report: leave its binding out instead',
    });
  }
  if (options.checksPodTemplates === true) {
    const text = 'it has no counterpart: the exported policy is for pods only, and not for the templates of workloads';
    problems.push({ field: 'podTemplates', message: text });
  }
  const policy: JsonObject = {
    apiVersion: isMutating ? mutatingVersion(options.kubernetesVersion, problems) : API_VERSION,
    kind: isMutating ? 'MutatingAdmissionPolicy' : 'ValidatingAdmissionPolicy',
    metadata: { name: options.name },
    spec: {
      failurePolicy: spec.failurePolicy,
      ...(isMutating ? { reinvocationPolicy: spec.reinvocationPolicy } : {}),
      matchConstraints: EVERYTHING,
      ...own,
      ...(requests === undefined ? {} : requestFields(requests, own)),
      ...(isMutating ? {} : { validations: validationsOf(own.validations, options, problems) }),
    },
  };
  const binding: JsonObject = {
    apiVersion: policy.apiVersion ?? API_VERSION,
    kind: isMutating ? 'MutatingAdmissionPolicyBinding' : 'ValidatingAdmissionPolicyBinding',
    metadata: { name: options.name },
    spec: {
      policyName: options.name,
      ...(isMutating ? {} : { validationActions: options.monitors === true ? ['Warn', 'Audit'] : ['Deny'] }),
      ...(paramRef === undefined ? {} : { paramRef }),
      ...(requests === undefined ? {} : bindingResources(requests, own)),
    },
  };
  const { kubernetesVersion } = options;
  const loaded = loadManifests([policy, binding], kubernetesVersion === undefined ? {} : { kubernetesVersion });
  return { manifests: [policy, binding], problems: [...problems, ...loaded.problems] };
}

/** Fields of the policy's spec that select requests. */
function requestFields(requests: ExportedRequests, settings: JsonObject): JsonObject {
  const { rules, matchPolicy, failurePolicy, matchConditions, namespace, namespaceSelector, objectSelector } = requests;
  const own = Array.isArray(settings.matchConditions) ? settings.matchConditions : [];
  const conditions = [...matchConditions.map(({ name, expression }) => ({ name, expression })), ...own];
  const scope = namespace === undefined ? {} : { scope: 'Namespaced' };
  return {
    failurePolicy: settings.failurePolicy ?? failurePolicy,
    matchConstraints: {
      matchPolicy,
      resourceRules: rules.map((rule) => ({ ...plain(rule), ...scope })),
      ...selectorField('namespaceSelector', namespaceSelector),
      ...selectorField('objectSelector', objectSelector),
    },
    ...(conditions.length === 0 ? {} : { matchConditions: uniquelyNamed(conditions) }),
  };
}

/** Requests must match policy and binding: the binding has the constraints of the settings, and the namespace. */
function bindingResources({ namespace }: ExportedRequests, settings: JsonObject): JsonObject {
  const constraints = isJsonObject(settings.matchConstraints) ? settings.matchConstraints : undefined;
  if (namespace === undefined) {
    return constraints === undefined ? {} : { matchResources: constraints };
  }
  const selector = isJsonObject(constraints?.namespaceSelector) ? constraints.namespaceSelector : {};
  const expressions = Array.isArray(selector.matchExpressions) ? selector.matchExpressions : [];
  const inside = { key: NAMESPACE_NAME_LABEL, operator: 'In', values: [namespace] };
  return {
    matchResources: {
      ...constraints,
      namespaceSelector: { ...selector, matchExpressions: [...expressions, inside] },
    },
  };
}

function selectorField(field: string, selector: MatchSelector | undefined): JsonObject {
  return selector === undefined || Object.keys(selector).length === 0 ? {} : { [field]: plain(selector) };
}

/** A copy that is JSON. */
function plain(value: MatchRule | MatchSelector): JsonObject {
  return parseJson(JSON.stringify(value)) as JsonObject;
}

/** Match conditions of policy and settings may have equal names. */
function uniquelyNamed(conditions: readonly JsonValue[]): JsonValue[] {
  const names = new Set<JsonValue | undefined>();
  return conditions.map((condition) => {
    if (!isJsonObject(condition)) {
      return condition;
    }
    let { name } = condition;
    for (let copy = 2; names.has(name); copy += 1) {
      name = `${textOf(condition.name)}-${copy}`;
    }
    names.add(name);
    return { ...condition, ...(name === undefined ? {} : { name }) };
  });
}

/** Settings with the key names of API servers, without empty and null fields. */
function normalised(settings: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(withCamelKeys(settings)).filter(
      ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  );
}

function validationsOf(value: JsonValue | undefined, options: ExportOptions, problems: FieldProblem[]): JsonValue {
  if (!Array.isArray(value)) {
    return [];
  }
  return value.map((validation, index) => {
    if (!isJsonObject(validation)) {
      return validation;
    }
    const { reason, message, messageExpression, ...rest } = validation;
    if (reason === 'Unauthorized') {
      const text = 'API servers do not take the reason Unauthorized: it became Forbidden';
      problems.push({ field: `validations[${index}].reason`, message: text });
    }
    const texts: JsonObject =
      options.message === undefined
        ? {
            ...(message === undefined || message === null || message === '' ? {} : { message }),
            ...(messageExpression === undefined || messageExpression === null || messageExpression === ''
              ? {}
              : { messageExpression }),
          }
        : { message: options.message };
    const known = reason === 'Unauthorized' ? 'Forbidden' : reason;
    return { ...rest, ...texts, ...(known === undefined || known === null || known === '' ? {} : { reason: known }) };
  });
}

function mutatingVersion(version: number | undefined, problems: FieldProblem[]): string {
  if (version === undefined || version >= MUTATING_V1_SINCE) {
    return API_VERSION;
  }
  const name = version >= MUTATING_V1BETA1_SINCE ? 'v1beta1' : 'v1alpha1';
  const text = `Kubernetes 1.${version} has mutating policies as ${name} only, switched off: it needs the feature gate MutatingAdmissionPolicy`;
  problems.push({ field: '', message: text });
  return `admissionregistration.k8s.io/${name}`;
}
