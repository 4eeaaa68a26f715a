import assert from 'node:assert/strict';
import { policyMatch } from '../../resources/index.ts';
import type { AdmissionPolicySpec, PolicyMatch } from '../../resources/index.ts';
import { admit } from '../buckets/admit.ts';
import type { BucketResult } from '../buckets/admit.ts';
import type { AdmitOptions } from '../buckets/bucket-review.ts';
import { PolicyTable } from '../buckets/policy-table.ts';
import type { PolicyLogEntry } from '../capabilities/host-port.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { createPolicy } from '../loaded-policy.ts';
import type { LoadedPolicy, PolicyOptions } from '../loaded-policy.ts';
import type { MonitoredVerdict } from '../monitored-verdict.ts';
import type { Observation } from '../verdict/observation.ts';
import { readReview } from '../evaluate.ts';
import type { Verdict } from '../verdict/verdict.ts';
import { readPolicyDefinition } from '../definition/policy-reader.ts';
import { bytes, podReview } from './reviews.ts';
import { ScriptedGuest } from './scripted-guest.ts';
import { TestNamespaces } from './test-namespaces.ts';

/** A policy of a test. By default it matches the creation of pods and allows. */
export interface TestPolicy {
  readonly name: string;
  readonly namespace?: string;
  readonly spec?: JsonObject;
  /** Answers a request in the format of guests. */
  readonly answer?: (request: JsonObject) => unknown;
  readonly alsoIn?: readonly string[];
}

export interface Evaluated {
  readonly verdict: Verdict;
  readonly observations: readonly Observation[];
  readonly monitored: readonly MonitoredVerdict[];
}

export const PRODUCT_NAMESPACE = 'portcullis';
export const POD_RULE = {
  operations: ['CREATE'],
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['pods'],
  scope: '*',
};

/** A policy table for tests: the code of each policy is a function. */
export class TestTable {
  readonly log: PolicyLogEntry[] = [];
  readonly options: PolicyOptions;
  readonly table: PolicyTable;
  readonly namespaces: TestNamespaces = new TestNamespaces();

  constructor(options: Partial<PolicyOptions> = {}) {
    const request = (): never => assert.fail('no policy of these tests calls the host');
    this.options = { port: { request }, log: (entry) => this.log.push(entry), ...options };
    this.table = new PolicyTable(this.options);
  }

  /** Returns the policy's id and match rules. */
  add({ name, namespace, spec = {}, answer, alsoIn }: TestPolicy): {
    readonly id: string;
    readonly match: PolicyMatch;
  } {
    const { id, match, definition } = described({ name, spec, ...(namespace === undefined ? {} : { namespace }) });
    const policy = this.load(id, definition, answer);
    this.table.set(policy, match, alsoIn);
    return { id, match };
  }

  load(id: string, definition: JsonObject, answer: TestPolicy['answer'] = () => ({ accepted: true })): LoadedPolicy {
    const read = readPolicyDefinition(id, definition);
    assert.ok(read.definition, JSON.stringify(read.faults));
    const guest = new ScriptedGuest(({ request }) => answer(request as JsonObject));
    return createPolicy(read.definition, () => guest, this.options);
  }

  admit(bucket: string, review: JsonValue = podReview(), options: AdmitOptions = {}): BucketResult {
    return admit(this.table, bucket, readReview('validate', bytes(review)), { objects: this.namespaces, ...options });
  }

  evaluate(bucket: string, review: JsonValue = podReview(), options: AdmitOptions = {}): Evaluated {
    const admission = this.admit(bucket, review, options);
    assert.ok(admission.kind === 'verdict', JSON.stringify(admission));
    const { verdict, observations, monitored } = admission;
    return { verdict, observations, monitored };
  }
}

/** The policy's id, match rules and definition, from its spec. */
function described({ name, namespace, spec = {} }: TestPolicy): {
  readonly id: string;
  readonly match: PolicyMatch;
  readonly definition: JsonObject;
} {
  const { mode, message, timeoutEvalSeconds, policies, expression, mutating = false, ownWebhook, ...rest } = spec;
  const own = { rules: [POD_RULE], ...rest, ...(policies === undefined ? { mutating } : { policies, expression }) };
  const isGroup = policies !== undefined;
  const kind = `${namespace === undefined ? 'Cluster' : ''}AdmissionPolicy${isGroup ? 'Group' : ''}`;
  const object = { kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
  const match = policyMatch(
    { ...object, spec: own as unknown as AdmissionPolicySpec },
    { productNamespace: PRODUCT_NAMESPACE, ownWebhook: ownWebhook === true },
  );
  const prefix = `kw.${namespace === undefined ? 'cap' : 'ap'}${isGroup ? 'g' : ''}`;
  const id = [prefix, ...(namespace === undefined ? [] : [namespace]), name].join('.');
  const common = {
    ...(mode === undefined ? {} : { policyMode: mode }),
    ...(message === undefined ? {} : { message }),
    failurePolicy: match.failurePolicy,
    ...(match.podTemplates === undefined ? {} : { podTemplates: match.podTemplates }),
  };
  const definition = isGroup
    ? { ...common, policies, expression: expression ?? 'true', message: message ?? 'the group denies' }
    : {
        ...common,
        module: 'm.wasm',
        allowedToMutate: mutating,
        ...(timeoutEvalSeconds === undefined ? {} : { timeoutEvalSeconds }),
      };
  return { id, match, definition };
}

/** The bucket of policies with default settings. */
export const VALIDATING = 'validating.fail.equivalent.cluster.v1';
export const MUTATING = 'mutating.fail.equivalent.cluster.v1';
