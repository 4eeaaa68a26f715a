import { isJsonObject } from '../json-text.ts';
import type { JsonObject, JsonValue } from '../json-text.ts';
import type { FieldProblem } from '../field-problem.ts';
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
  if (spec.matchConstraints === undefined) {
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
  const policy: JsonObject = {
    apiVersion: isMutating ? mutatingVersion(options.kubernetesVersion, problems) : API_VERSION,
    kind: isMutating ? 'MutatingAdmissionPolicy' : 'ValidatingAdmissionPolicy',
    metadata: { name: options.name },
    spec: {
      failurePolicy: spec.failurePolicy,
      ...(isMutating ? { reinvocationPolicy: spec.reinvocationPolicy } : {}),
      matchConstraints: EVERYTHING,
      ...own,
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
    },
  };
  const { kubernetesVersion } = options;
  const loaded = loadManifests([policy, binding], kubernetesVersion === undefined ? {} : { kubernetesVersion });
  return { manifests: [policy, binding], problems: [...problems, ...loaded.problems] };
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
