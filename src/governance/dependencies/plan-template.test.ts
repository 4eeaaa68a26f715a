import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pendingMessage } from './pending-message.ts';
import { hasUniqueNames, planTemplate, type TemplatePlan, type TemplateFacts } from './plan-template.ts';
import { dependency } from './testing/dependency-scene.ts';
import type { UnmetDependency, UnmetReason } from './unmet-dependencies.ts';

const definition = (prune = 'DeleteAll', name: unknown = 'config') => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'ConfigurationPolicy',
  metadata: { name },
  spec: { pruneObjectBehavior: prune },
});
const unmet = (reason: UnmetReason, name = 'default.b'): UnmetDependency => ({
  ...dependency(name),
  actual: undefined,
  reason,
  text: '',
  detail: '',
});
const EXISTING = { policy: 'default.a', pruneObjectBehavior: 'DeleteAll' };
const facts = (rest: Partial<TemplateFacts> = {}): TemplateFacts => ({
  policy: 'default.a',
  index: 3,
  hasUniqueNames: true,
  objectDefinition: definition(),
  ignorePending: false,
  dependencies: { requirements: [], conflict: undefined },
  mapping: { isServed: true, isPolicyType: true },
  unmet: [],
  existing: undefined,
  hubTemplateError: undefined,
  ...rest,
});
const error = (template: string, text: string): TemplatePlan => ({
  type: 'error',
  template,
  message: `NonCompliant; template-error; ${text}`,
});

describe('planTemplate', () => {
  /** In the order of the checks: each facts fails its own check and all later ones. */
  const checks: readonly (readonly [Partial<TemplateFacts>, TemplatePlan])[] = [
    [{ hasUniqueNames: false }, error('template-3', 'All policy-template names must be unique within a policy')],
    [
      { objectDefinition: {} },
      error('template-3', "Failed to decode policy template with err: Object 'Kind' is missing in '{}'"),
    ],
    [
      { dependencies: { requirements: [], conflict: 'dependency on x has conflicting compliance states' } },
      error(
        'template-3',
        'Failed to decode policy template with err: dependency on x has conflicting compliance states',
      ),
    ],
    [
      { objectDefinition: definition('None', '') },
      error('template-3', 'Failed to parse or get name from policy template at index 3'),
    ],
    [
      { mapping: { isServed: false, message: 'not there' } },
      error('config', 'Mapping not found, check if you have the CRD deployed: not there'),
    ],
    [
      { mapping: { isServed: true, isPolicyType: false } },
      error(
        'config',
        'policy-template kind is not supported: policy.open-cluster-management.io/v1, Kind=ConfigurationPolicy',
      ),
    ],
    [
      { existing: { policy: 'default.z', pruneObjectBehavior: 'DeleteAll' } },
      error(
        'config',
        'Template name must be unique. Policy template with kind: ConfigurationPolicy name: config already exists in policy default.z',
      ),
    ],
    [
      { unmet: [unmet('Mismatch')] },
      {
        type: 'pending',
        template: 'config',
        message: 'Pending; Dependencies were not satisfied: 1 is still pending (Policy default.b)',
        dependencies: [unmet('Mismatch')],
      },
    ],
    [
      { hubTemplateError: 'no such hub' },
      { type: 'unresolved', template: 'config', message: 'NonCompliant; template-error; no such hub' },
    ],
    [{}, { type: 'apply', template: 'config' }],
  ];
  for (const [index, [, expected]] of checks.entries()) {
    it(`decides by check ${index + 1} before all later ones`, () => {
      const failing = checks.slice(index).toReversed();
      assert.deepEqual(planTemplate(facts(Object.assign({}, ...failing.map(([rest]) => rest)))), expected);
    });
  }

  it('says which kinds of Open Cluster Management are not supported, served or not', () => {
    const plan = (kind: string, isServed: boolean): TemplatePlan => {
      const apiVersion = 'policy.open-cluster-management.io/v1beta1';
      const mapping = isServed ? { isServed, isPolicyType: true } : { isServed, message: 'x' };
      return planTemplate(facts({ objectDefinition: { ...definition(), apiVersion, kind }, mapping }));
    };
    for (const kind of ['OperatorPolicy', 'IamPolicy']) {
      for (const isServed of [true, false]) {
        const { message } = plan(kind, isServed) as { readonly message?: string };
        assert.match(message ?? '', new RegExp(`^NonCompliant; template-error; ${kind} is not supported yet: `, 'u'));
      }
    }
    assert.equal(plan('CheckPolicy', true).type, 'apply');
  });

  it('advises by the kind that is not served', () => {
    const message = (apiVersion: string, kind: string): string => {
      const objectDefinition = { ...definition(), apiVersion, kind };
      const plan = planTemplate(facts({ objectDefinition, mapping: { isServed: false, message: 'x' } }));
      return plan.type === 'error' ? plan.message : plan.type;
    };
    assert.match(
      message('templates.gatekeeper.sh/v1', 'ConstraintTemplate'),
      /Mapping not found, check if Gatekeeper is installed: x$/u,
    );
    assert.match(
      message('constraints.gatekeeper.sh/v1beta1', 'K8sLabels'),
      /check if the required ConstraintTemplate has been deployed: x$/u,
    );
  });

  it('writes a core kind as Go does', () => {
    const objectDefinition = { ...definition(), apiVersion: 'v1', kind: 'Pod' };
    const plan = planTemplate(facts({ objectDefinition, mapping: { isServed: true, isPolicyType: false } }));
    assert.deepEqual(plan, error('config', 'policy-template kind is not supported: /v1, Kind=Pod'));
  });

  const removals: readonly (readonly [UnmetReason, TemplatePlan['type']])[] = [
    ['Mismatch', 'remove-because-unmet'],
    ['NotFound', 'remove-because-unmet'],
    ['NotPlaced', 'remove-because-unmet'],
    ['NoSuchKind', 'suspend'],
    ['NoStatus', 'suspend'],
    ['Stale', 'suspend'],
    ['Forbidden', 'suspend'],
    ['GetFailed', 'suspend'],
    ['Cycle', 'suspend'],
  ];
  for (const [reason, expected] of removals) {
    it(`answers ${reason} with ${expected}`, () => {
      assert.equal(planTemplate(facts({ existing: EXISTING, unmet: [unmet(reason)] })).type, expected);
    });
  }

  it('removes when one dependency is unmet for sure, whatever is not known of others', () => {
    const dependencies = [unmet('Stale'), unmet('Mismatch', 'default.c'), unmet('GetFailed', 'default.d')];
    assert.equal(planTemplate(facts({ existing: EXISTING, unmet: dependencies })).type, 'remove-because-unmet');
  });

  it('removes only what prunes, both as declared and as it exists', () => {
    for (const [declared, existing, expected] of [
      ['DeleteIfCreated', 'DeleteAll', 'remove-because-unmet'],
      ['None', 'DeleteAll', 'suspend'],
      ['DeleteAll', 'None', 'suspend'],
      ['DeleteAll', '', 'suspend'],
      ['toString', 'DeleteAll', 'suspend'],
    ] as const) {
      const plan = planTemplate(
        facts({
          objectDefinition: definition(declared),
          existing: { policy: 'default.a', pruneObjectBehavior: existing },
          unmet: [unmet('Mismatch')],
        }),
      );
      assert.equal(plan.type, expected, `${declared} ${existing}`);
    }
  });

  it('never touches an object that belongs to no policy', () => {
    const existing = { policy: undefined, pruneObjectBehavior: 'DeleteAll' };
    assert.deepEqual(
      planTemplate(facts({ existing, unmet: [unmet('Mismatch')] })),
      error(
        'config',
        'Template name must be unique. Policy template with kind: ConfigurationPolicy name: config already exists outside of a Policy',
      ),
    );
  });

  it('takes any value for a definition, and bounds the message', () => {
    for (const objectDefinition of [undefined, null, 7, 'x', [], { kind: 7 }, { blob: 'x'.repeat(100_000) }]) {
      const plan = planTemplate(facts({ objectDefinition }));
      assert.equal(plan.type, 'error');
      assert.ok(plan.type === 'error' && plan.message.length < 1_200);
    }
  });
});

describe('pendingMessage', () => {
  const two = [dependency('default.b'), dependency('a', 'Compliant', { kind: 'ConfigurationPolicy' })];

  it('counts and sorts', () => {
    assert.equal(
      pendingMessage(two, false),
      'Pending; Dependencies were not satisfied: 2 are still pending (ConfigurationPolicy a, Policy default.b)',
    );
  });

  it('is compliant when pending is ignored', () => {
    assert.equal(
      pendingMessage(two.slice(0, 1), true),
      'Compliant; Dependencies were not satisfied: 1 is still pending (Policy default.b) but ignorePending is true',
    );
  });
});

describe('hasUniqueNames', () => {
  it('compares the names of templates that have one', () => {
    assert.equal(hasUniqueNames([definition(), definition('None', 'other'), {}, null, {}]), true);
    assert.equal(hasUniqueNames([definition(), definition()]), false);
  });
});
