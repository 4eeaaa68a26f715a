import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ConfigurationPolicy, KubernetesObject } from '../../resources/index.ts';
import type { JsonObject } from '../../values/index.ts';
import { complianceMessage, resultBatches, templateCondition } from './compliance-message.ts';
import { afterDryRun, afterWrite } from './object-plan.ts';
import type { DryRunOutcome, ObjectPlan, WriteOutcome } from './object-plan.ts';
import type { ObjectTemplate } from './object-template.ts';
import { planEvaluation, templateHistories } from './plan-evaluation.ts';
import type { EvaluatedPolicy, ObjectTemplatePlan } from './plan-evaluation.ts';
import { jsonObjects } from './testing/json-values.ts';
import { MemorySource } from './testing/memory-source.ts';

const namespace = (name: string): KubernetesObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

function pod(name: string, fields: JsonObject = {}, metadata: JsonObject = {}): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'ns', ...metadata }, ...fields };
}

function definition(metadata: JsonObject, fields: JsonObject = {}, kind = 'Pod'): JsonObject {
  return { apiVersion: 'v1', kind, metadata, ...fields };
}

const NAMED = definition({ name: 'x', namespace: 'ns' }, { spec: { a: 1 } });
const UNNAMED = definition({}, { spec: { a: 1 } });

function template(
  objectDefinition: JsonObject,
  complianceType = 'musthave',
  others: Partial<ObjectTemplate> = {},
): ObjectTemplate {
  return { complianceType, objectDefinition, ...others };
}

/** The spec of a ConfigurationPolicy as it is evaluated; the schema's types must fit. */
function evaluated({ spec }: Pick<ConfigurationPolicy, 'spec'>): EvaluatedPolicy {
  const { remediationAction, namespaceSelector, 'object-templates': templates = [] } = spec;
  return policy(templates, { remediationAction, ...(namespaceSelector === undefined ? {} : { namespaceSelector }) });
}

function policy(templates: readonly ObjectTemplate[], others: Partial<EvaluatedPolicy> = {}): EvaluatedPolicy {
  return { policyName: 'p', remediationAction: 'inform', templates, ...others };
}

const ENFORCE = { remediationAction: 'Enforce' } as const;
const IN_ALL = { namespaceSelector: { include: ['*'] } } as const;

function conditionOf(plan: ObjectTemplatePlan): string {
  const batch = resultBatches(templateHistories(plan)).at(-1) ?? [];
  return complianceMessage([templateCondition(plan.resource, batch)]);
}

function onlyPlan(evaluated: EvaluatedPolicy, source: MemorySource): ObjectPlan {
  const [first] = planEvaluation(evaluated, source);
  assert.equal(first?.objects.length, 1, first?.result?.message);
  return first.objects[0]!;
}

interface Case {
  readonly when: string;
  readonly template: ObjectTemplate;
  readonly policy?: Partial<EvaluatedPolicy>;
  readonly objects?: readonly KubernetesObject[];
  readonly message: string;
}

const CASES: readonly Case[] = [
  {
    when: 'a named object does not exist',
    template: template(NAMED),
    message: 'NonCompliant; violation - pods [x] not found in namespace ns',
  },
  {
    when: 'a named object is as specified',
    template: template(NAMED, 'MustHave'),
    objects: [pod('x', { spec: { a: 1, b: 2 } })],
    message: 'Compliant; notification - pods [x] found as specified in namespace ns',
  },
  {
    when: 'a cluster-scoped object exists, in whatever namespace its definition says',
    template: template(definition({ name: 'ns', namespace: 'other' }, {}, 'Namespace')),
    message: 'Compliant; notification - namespaces [ns] found as specified',
  },
  {
    when: 'the status is not as specified',
    template: template({ ...NAMED, status: { phase: 'Running' } }),
    objects: [pod('x', { spec: { a: 1 }, status: { phase: 'Pending' } })],
    message: 'NonCompliant; violation - pods [x] found but not as specified in namespace ns',
  },
  {
    when: 'an unwanted object exists, whatever it looks like',
    template: template(NAMED, 'mustnothave'),
    objects: [pod('x', { spec: { a: 2 } })],
    message: 'NonCompliant; violation - pods [x] found in namespace ns',
  },
  {
    when: 'an unwanted object does not exist',
    template: template(NAMED, 'MustNotHave'),
    message: 'Compliant; notification - pods [x] missing as expected in namespace ns',
  },
  {
    when: 'the namespaceSelector gives the namespaces',
    template: template(definition({ name: 'x' })),
    policy: IN_ALL,
    objects: [pod('x')],
    message: 'NonCompliant; violation - pods [x] not found in namespace ns2',
  },
  {
    when: 'there is no namespace',
    template: template(definition({ name: 'x' })),
    message:
      'NonCompliant; violation - namespaced object x of kind Pod has no namespace specified from the policy namespaceSelector nor the object metadata',
  },
  {
    when: 'there is neither a namespace nor a name',
    template: template(UNNAMED),
    policy: { namespaceSelector: { exclude: ['a'] } },
    message:
      'NonCompliant; violation - namespaced object of kind Pod has no namespace specified from the policy namespaceSelector nor the object metadata',
  },
  {
    when: 'the namespaceSelector is invalid',
    template: template(UNNAMED),
    policy: { namespaceSelector: { include: ['['] } },
    message:
      "NonCompliant; violation - Error filtering namespaces with provided namespaceSelector: error parsing 'include' pattern '[': syntax error in pattern",
  },
  {
    when: 'some object matches a template without a name',
    template: template(UNNAMED, 'musthave'),
    policy: IN_ALL,
    objects: [
      pod('y', { spec: { a: 1, b: 1 } }),
      pod('z', { spec: { a: 2 } }),
      { ...pod('q', { spec: { a: 1 } }), metadata: { name: 'q', namespace: 'ns2' } },
    ],
    message:
      'Compliant; notification - pods [y] found as specified in namespace ns; pods [q] found as specified in namespace ns2',
  },
  {
    when: 'objects exist, and none matches a template without a name',
    template: template(UNNAMED),
    policy: IN_ALL,
    objects: [pod('y', { spec: { a: 2 } })],
    message:
      'NonCompliant; violation - pods not found in namespace ns2; pods found but not as specified in namespace ns',
  },
  {
    when: 'no object exists for a template without a name',
    template: template(UNNAMED),
    policy: IN_ALL,
    message: 'NonCompliant; violation - pods not found in namespaces: ns, ns2',
  },
  {
    when: 'objects match a template of what must not exist',
    template: template(UNNAMED, 'mustnothave'),
    policy: { ...IN_ALL, ...ENFORCE },
    objects: [pod('y', { spec: { a: 1 } }), pod('z', { spec: { a: 1 } }), pod('w', { spec: { a: 2 } })],
    message: 'NonCompliant; violation - pods [y, z] found in namespace ns',
  },
  {
    when: 'an objectSelector finds objects',
    template: template(UNNAMED, 'musthave', { objectSelector: { matchLabels: { app: 'web' } } }),
    policy: IN_ALL,
    objects: [pod('y', { spec: { a: 1 } }, { labels: { app: 'web' } }), pod('z', { spec: {} })],
    message: 'Compliant; notification - pods [y] found as specified in namespace ns',
  },
  {
    when: 'an objectSelector finds none',
    template: template(UNNAMED, 'musthave', { objectSelector: {} }),
    policy: IN_ALL,
    message: 'Compliant; notification - No objects of kind Pod were matched from the policy objectSelector',
  },
  {
    when: 'none of the selected objects looks like what must not exist',
    template: template(UNNAMED, 'mustnothave', { objectSelector: {} }),
    policy: IN_ALL,
    objects: [pod('y', { spec: { a: 2 } })],
    message: 'Compliant; notification - pods missing as expected in namespace ns',
  },
  {
    when: 'an objectSelector is invalid',
    template: template(UNNAMED, 'musthave', { objectSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }),
    policy: IN_ALL,
    message:
      'NonCompliant; violation - Error parsing provided objectSelector in the object-template at index [0]: "Near" is not a valid label selector operator',
  },
  {
    when: 'a name makes the objectSelector irrelevant',
    template: template(NAMED, 'musthave', { objectSelector: { matchLabels: { app: 'web' } } }),
    message: 'NonCompliant; violation - pods [x] not found in namespace ns',
  },
  {
    when: 'there is no kind',
    template: template({ apiVersion: 'v1', metadata: { name: 'x' } }),
    message:
      'NonCompliant; violation - The kind and apiVersion fields are required on the object template at index 0 in policy p',
  },
  {
    when: 'the name is no string',
    template: template(definition({ name: 10 }), 'mustnothave'),
    policy: IN_ALL,
    message:
      'NonCompliant; violation - Error parsing the namespace from the object definition: expected the name and the namespace in its metadata to be strings',
  },
  {
    when: 'the kind is unknown, also for what must not exist',
    template: template(definition({ name: 'x' }, { apiVersion: 'kafka.strimzi.io/v1' }, 'Kafka'), 'mustnothave'),
    message:
      "NonCompliant; violation - couldn't find mapping resource with kind Kafka in API version kafka.strimzi.io/v1, please check if you have CRD deployed",
  },
  {
    when: 'the template cannot be compared with the object',
    template: template(NAMED),
    objects: [pod('x', { spec: ['a'] })],
    message:
      'NonCompliant; violation - Error merging changes into key "spec": object type of template and existing do not match',
  },
];

describe('the plan of an evaluation', () => {
  for (const { when, message, objects = [], ...given } of CASES) {
    it(`when ${when}`, () => {
      const source = new MemorySource([namespace('ns'), namespace('ns2'), ...objects]);
      const [plan] = planEvaluation(policy([given.template], given.policy), source);
      assert.ok(plan !== undefined);
      const noDryRun = { ...plan, objects: plan.objects.map((one) => afterDryRun(one, { type: 'unavailable' })) };
      assert.equal(conditionOf(noDryRun), message);
    });
  }

  it('takes the spec of a ConfigurationPolicy', () => {
    const given = evaluated({
      spec: {
        remediationAction: 'Enforce',
        pruneObjectBehavior: 'None',
        namespaceSelector: { include: ['ns'] },
        'object-templates': [
          { complianceType: 'MustHave', recreateOption: 'None', objectDefinition: definition({ name: 'x' }) },
        ],
      },
    });
    assert.equal(onlyPlan(given, new MemorySource([namespace('ns')])).action.type, 'create');
  });

  it('says when objects cannot be read', () => {
    const source = new MemorySource([namespace('ns')]);
    source.unreadable.add('Pod');
    const selecting = template(UNNAMED, 'musthave', { objectSelector: {} });
    const [named, unnamed, selected] = planEvaluation(
      policy([template(NAMED), template(UNNAMED), selecting], IN_ALL),
      source,
    );
    const retrieving = 'NonCompliant; violation - Error retrieving an object for object-template at index';
    assert.equal(conditionOf(named!), `${retrieving} [0]: Pod is forbidden`);
    assert.equal(conditionOf(unnamed!), `${retrieving} [1]: Pod is forbidden`);
    assert.equal(
      conditionOf(selected!),
      'NonCompliant; violation - Error listing resources with provided objectSelector in the object-template at index [2]: Pod is forbidden',
    );
  });

  it('never takes an object that takes too long to compare for absent', () => {
    const list = (of: number): JsonObject => ({
      spec: { l: Array.from({ length: 5_000 }, (_, index) => ({ a: { b: of * index } })) },
    });
    const source = new MemorySource([namespace('ns'), pod('x', list(1))]);
    const { verdict } = onlyPlan(policy([template(definition({}, list(-1)), 'mustnothave')], IN_ALL), source);
    assert.equal(verdict, 'failed');
  });
});

describe('a policy about too much', () => {
  const inAll = Array.from({ length: 9_000 }, (_, index) => namespace(`ns-${index}`));

  it('ends with an error for the templates that do not fit', () => {
    const plans = planEvaluation(
      policy(
        [0, 1, 2, 3].map((index) => template(definition({ name: `x-${index}` }))),
        IN_ALL,
      ),
      new MemorySource(inAll),
    );
    assert.deepEqual(
      plans.map(({ objects }) => objects.length),
      [9_000, 9_000, 0, 0],
    );
    assert.match(plans[3]?.result?.message ?? '', /^expected the policy to have at most 20000 objects, got more/);
    assert.equal(plans[3]?.result?.isCompliant, false);
  });
});

describe('template functions', () => {
  const resolve: EvaluatedPolicy['resolve'] = (_template, context) => {
    if (context.name === 'skip') {
      return { type: 'skipped' };
    }
    const live = context.live() === undefined ? 'absent' : 'live';
    return {
      type: 'resolved',
      definition: definition({ name: context.name, namespace: context.namespace }, { spec: { live } }),
      isSensitive: true,
    };
  };
  const source = new MemorySource([namespace('ns'), pod('a', { spec: {} }), pod('skip')]);
  const selecting = template(definition({ name: '{{ .ObjectName }}' }), 'musthave', { objectSelector: {} });

  it('see the name, the namespace and the live object', () => {
    const plan = onlyPlan(policy([selecting], { ...IN_ALL, resolve }), source);
    assert.equal(plan.name, 'a');
    assert.deepEqual(plan.dryRun?.['spec'], { live: 'live' });
    assert.equal(plan.settings.diffRecord, 'Censored', 'they may have read secrets');
  });

  const fails = (given: EvaluatedPolicy['resolve'], metadata: JsonObject = {}): string => {
    const wanted = template(definition(metadata), 'musthave', { objectSelector: {} });
    const [plan] = planEvaluation(
      policy([wanted], { ...IN_ALL, ...(given === undefined ? {} : { resolve: given }) }),
      source,
    );
    return conditionOf(plan!);
  };

  it('can skip all objects', () => {
    const message = 'All objects of kind Pod were skipped by the `skipObject` template function';
    assert.equal(
      fails(() => ({ type: 'skipped' })),
      `Compliant; notification - ${message}`,
    );
  });

  it('can fail', () => {
    assert.equal(
      fails(() => ({ type: 'failed', message: 'boom' })),
      'NonCompliant; violation - boom',
    );
  });

  it('must not lead to another object than the selected one', () => {
    const to = (metadata: JsonObject) => (): ReturnType<NonNullable<EvaluatedPolicy['resolve']>> => ({
      type: 'resolved',
      definition: definition(metadata),
      isSensitive: false,
    });
    assert.match(
      fails(to({ name: 'other', namespace: 'ns' })),
      /name must match the result from the object selector after/,
    );
    assert.match(
      fails(to({ name: 'a', namespace: 'x' })),
      /namespace must match the result from the namespace selector after/,
    );
  });

  it('must give a namespace', () => {
    const wanted = template(definition({ name: 'a', namespace: '{{ "" }}' }));
    const [plan] = planEvaluation(
      policy([wanted], {
        resolve: () => ({ type: 'resolved', definition: definition({ name: 'a' }), isSensitive: false }),
      }),
      source,
    );
    assert.match(
      conditionOf(plan!),
      /namespaced object a of kind Pod has no namespace specified after template resolution$/,
    );
  });
});

/** What the plan of a named object becomes. */
interface Outcome {
  readonly when: string;
  readonly enforce?: boolean;
  readonly template: ObjectTemplate;
  readonly live?: KubernetesObject;
  readonly dryRun?: DryRunOutcome;
  readonly action: ObjectPlan['action']['type'];
  readonly write?: WriteOutcome;
  /** The messages, one after the other. */
  readonly messages: readonly string[];
}

const DIFFERENT = pod('x', { spec: { a: 2 } });
const CHANGED: DryRunOutcome = { type: 'changed', object: pod('x', { spec: { a: 1 } }) };
const WRITTEN: WriteOutcome = { type: 'written', uid: '9' };
const REFUSED: WriteOutcome = { type: 'failed', message: 'refused' };
const MISMATCH = 'NonCompliant; violation - pods [x] found but not as specified in namespace ns';
const NOT_FOUND = 'NonCompliant; violation - pods [x] not found in namespace ns';
const UPDATED = 'Compliant; notification - pods [x] was updated successfully in namespace ns';
const FOUND = 'Compliant; notification - pods [x] found as specified in namespace ns';
const VIOLATION = 'NonCompliant; violation - pods [x] in namespace ns';

const OUTCOMES: readonly Outcome[] = [
  {
    when: 'inform reports what differs',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'none',
    messages: [MISMATCH],
  },
  {
    when: 'enforce updates',
    enforce: true,
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'update',
    write: WRITTEN,
    messages: [MISMATCH, UPDATED],
  },
  {
    when: 'a dry run shows no difference',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'unchanged' },
    action: 'none',
    messages: [FOUND],
  },
  {
    when: 'a dry run does not excuse the status',
    template: template({ ...NAMED, status: { b: 1 } }),
    live: DIFFERENT,
    dryRun: { type: 'unchanged' },
    action: 'none',
    messages: [MISMATCH],
  },
  {
    when: 'a zero value is doubtful, and set',
    enforce: true,
    template: template(definition({ name: 'x', namespace: 'ns' }, { spec: { a: 0 } })),
    live: pod('x', { spec: { b: 1 } }),
    dryRun: { type: 'changed', object: pod('x', { spec: { a: 0, b: 1 } }) },
    action: 'update',
    write: WRITTEN,
    messages: [MISMATCH, UPDATED],
  },
  {
    when: 'a zero value is doubtful, and there is no API server',
    template: template(definition({ name: 'x', namespace: 'ns' }, { spec: { a: 0 } })),
    live: pod('x', { spec: { b: 1 } }),
    dryRun: { type: 'unavailable' },
    action: 'none',
    messages: [FOUND],
  },
  {
    when: 'recreateOption Always recreates',
    enforce: true,
    template: template(NAMED, 'musthave', { recreateOption: 'Always' }),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'recreate',
    write: WRITTEN,
    messages: [MISMATCH, UPDATED],
  },
  {
    when: 'recreateOption IfRequired updates when it can',
    enforce: true,
    template: template(NAMED, 'musthave', { recreateOption: 'IfRequired' }),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'update',
    messages: [MISMATCH],
  },
  {
    when: 'recreateOption IfRequired recreates for immutable fields',
    enforce: true,
    template: template(NAMED, 'musthave', { recreateOption: 'IfRequired' }),
    live: DIFFERENT,
    dryRun: { type: 'invalid' },
    action: 'recreate',
    write: { type: 'timeout' },
    messages: [
      MISMATCH,
      `${VIOLATION} timed out waiting for the object to delete during recreate, will retry on the next policy evaluation`,
    ],
  },
  {
    when: 'immutable fields are a violation of their own when they are enforced',
    enforce: true,
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'invalid' },
    action: 'none',
    messages: [
      `${VIOLATION} cannot be updated, likely due to immutable fields not matching, you may set spec["object-templates"][].recreateOption to recreate the object`,
    ],
  },
  {
    when: 'immutable fields are a mismatch for inform',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'invalid' },
    action: 'none',
    messages: [MISMATCH],
  },
  {
    when: 'an unknown field is a violation',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'failed', message: 'strict decoding error: unknown field "spec.a"' },
    action: 'none',
    messages: [
      'NonCompliant; violation - Error validating the object x, the error is `strict decoding error: unknown field "spec.a"`',
    ],
  },
  {
    when: 'the dry run fails',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'failed', message: 'forbidden' },
    action: 'none',
    messages: [
      MISMATCH,
      'NonCompliant; violation - Error issuing a dry run update request for the object `x`, the error is `forbidden`',
    ],
  },
  {
    when: 'the object was deleted meanwhile',
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: { type: 'failed', message: 'not found', isNotFound: true },
    action: 'none',
    messages: [MISMATCH, 'NonCompliant; violation - `Pod` is not present and must be created'],
  },
  {
    when: 'an update fails',
    enforce: true,
    template: template(NAMED),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'update',
    write: REFUSED,
    messages: [MISMATCH, `${VIOLATION} failed to update with the error \`refused\``],
  },
  {
    when: 'an update leaves the status as it is',
    enforce: true,
    template: template({ ...NAMED, status: { b: 1 } }),
    live: DIFFERENT,
    dryRun: CHANGED,
    action: 'update',
    write: WRITTEN,
    messages: [MISMATCH, MISMATCH],
  },
  {
    when: 'enforce creates',
    enforce: true,
    template: template(NAMED),
    action: 'create',
    write: WRITTEN,
    messages: [NOT_FOUND, 'Compliant; notification - pods [x] was created successfully in namespace ns'],
  },
  {
    when: 'a created object has no status yet',
    enforce: true,
    template: template({ ...NAMED, status: { b: 1 } }),
    action: 'create',
    write: WRITTEN,
    messages: [
      NOT_FOUND,
      `${VIOLATION} was created successfully, the status of the object will be verified in the next evaluation`,
    ],
  },
  {
    when: 'a creation fails',
    enforce: true,
    template: template(NAMED),
    action: 'create',
    write: REFUSED,
    messages: [NOT_FOUND, `${VIOLATION} is missing, and cannot be created, reason: \`refused\``],
  },
  {
    when: 'enforce deletes',
    enforce: true,
    template: template(NAMED, 'mustnothave'),
    live: DIFFERENT,
    action: 'delete',
    write: WRITTEN,
    messages: ['Compliant; notification - pods [x] was deleted successfully in namespace ns'],
  },
  {
    when: 'a deletion fails',
    enforce: true,
    template: template(NAMED, 'mustnothave'),
    live: DIFFERENT,
    action: 'delete',
    write: REFUSED,
    messages: [`${VIOLATION} exists, and cannot be deleted, reason: \`refused\``],
  },
];

describe('the outcome of a plan', () => {
  for (const { when, enforce = false, template: given, live, dryRun, action, write, messages } of OUTCOMES) {
    it(when, () => {
      const source = new MemorySource([namespace('ns'), ...(live === undefined ? [] : [live])]);
      let plan = onlyPlan(policy([given], enforce ? ENFORCE : {}), source);
      assert.equal(plan.dryRun !== undefined, dryRun !== undefined, 'whether a dry run is wanted');
      plan = dryRun === undefined ? plan : afterDryRun(plan, dryRun);
      assert.equal(plan.action.type, action);
      plan = write === undefined ? plan : afterWrite(plan, write);
      assert.deepEqual(
        plan.history.map((result) => complianceMessage([templateCondition('pods', [result])])),
        messages,
      );
    });
  }

  it('is remembered in the properties', () => {
    const source = new MemorySource([namespace('ns'), { ...DIFFERENT, metadata: { ...DIFFERENT.metadata, uid: 'u' } }]);
    const plan = onlyPlan(policy([template(NAMED)], ENFORCE), source);
    assert.deepEqual(afterDryRun(plan, { type: 'unchanged' }).properties, {
      createdByPolicy: false,
      uid: 'u',
      matchesAfterDryRun: true,
    });
    const { createdByPolicy, diff } = afterDryRun(plan, CHANGED).properties ?? {};
    assert.equal(createdByPolicy, false);
    assert.match(diff ?? '', /^--- ns\/x : existing\n/);
    for (const isOwn of [true, false]) {
      const recreation = { ...plan, action: { type: 'recreate', object: plan.desired } } as const;
      const { properties } = afterWrite(recreation, { ...WRITTEN, createdByPolicy: isOwn });
      assert.deepEqual([properties?.createdByPolicy, properties?.uid], [isOwn, '9']);
    }
    const created = afterWrite({ ...plan, action: { type: 'create', object: plan.desired } }, WRITTEN);
    assert.deepEqual(created.properties, { createdByPolicy: true, uid: '9' });
  });

  it('never writes a status', () => {
    const given = template({ ...NAMED, status: { b: 1 } }, 'musthave', { recreateOption: 'Always' });
    const creation = onlyPlan(policy([given], ENFORCE), new MemorySource([namespace('ns')]));
    assert.deepEqual(creation.action, { type: 'create', object: NAMED });
    const update = onlyPlan(policy([given], ENFORCE), new MemorySource([pod('x', { spec: {}, status: { b: 2 } })]));
    assert.deepEqual(update.dryRun?.['status'], { b: 2 });
    assert.deepEqual(afterDryRun(update, CHANGED).action, { type: 'recreate', object: NAMED });
  });
});

/** Enforces a policy on the source, whose API server takes absent values for zero values; returns the actions. */
function enforce(evaluated: EvaluatedPolicy, source: MemorySource): readonly string[] {
  return planEvaluation(evaluated, source).flatMap(({ objects }) =>
    objects.map((planned) => {
      const { dryRun: object, mismatches } = planned;
      const isChanged = object !== undefined && mismatches.length > 0;
      const {
        action,
        type,
        namespace: place,
        name,
      } = afterDryRun(planned, isChanged ? { type: 'changed', object } : { type: 'unchanged' });
      if (action.type === 'delete') {
        source.delete(type, place, name);
      } else if (action.type !== 'none') {
        source.put(action.object);
      }
      return action.type;
    }),
  );
}

describe('an enforced policy', () => {
  it('writes nothing on the next evaluation', () => {
    const types = fc.constantFrom('musthave', 'mustonlyhave', 'mustnothave');
    fc.assert(
      fc.property(types, jsonObjects(), fc.option(jsonObjects()), (complianceType, desired, live) => {
        const source = new MemorySource([namespace('ns'), ...(live === null ? [] : [pod('x', live)])]);
        const given = policy([template(definition({ name: 'x', namespace: 'ns' }, desired), complianceType)], ENFORCE);
        enforce(given, source);
        assert.deepEqual(enforce(given, source), ['none']);
      }),
      { numRuns: 500 },
    );
  });
});
