import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Condition } from '../../resources/index.ts';
import { MODULES_KEPT } from '../../resources/index.ts';
import { modulesKept } from './modules-kept.ts';
import type { ReplicaFacts } from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView, CopyFacts } from './admission-rollout-view.ts';

const WASM = `sha256:${'1'.repeat(64)}`;

function viewOf(servers: number, copies: CopyFacts | undefined, digest = WASM, node?: string): AdmissionRolloutView {
  const revision: Partial<AdmissionRevision> = {
    number: 1,
    state: 'Serving',
    order: 1,
    modules: [{ name: 'p', module: 'm', digest }],
  };
  const replica = (name: string): ReplicaFacts => ({
    name,
    state: 'connected',
    nodeName: node,
    revisions: new Map([[1, { state: 'Serving', reason: '', message: '', nextRetry: undefined }]]),
  });
  return {
    generation: 1,
    revisions: [revision as AdmissionRevision],
    replicas: Array.from({ length: servers }, (_, n) => replica(`r${n}`)),
    copies,
  } as unknown as AdmissionRolloutView;
}

const facts = (controllers: number, more: Partial<CopyFacts> = {}): CopyFacts => ({
  controllers,
  isRefused: false,
  isDurable: false,
  ...more,
});

function conditionOf(view: AdmissionRolloutView, conditions: readonly Condition[] = []): string | undefined {
  const found = modulesKept(view, {}, conditions, 0).conditions.find(({ type }) => type === MODULES_KEPT);
  return found && `${found.status} ${found.reason}`;
}

describe('whether modules are kept', () => {
  const cases: readonly (readonly [servers: number, facts: CopyFacts, expected: string])[] = [
    [2, facts(2), 'True Copied'],
    [2, facts(1), 'True Copied'],
    [1, facts(2), 'True Copied'],
    [1, facts(1), 'False TooFewCopies'],
    // Policy servers alone are lost together.
    [5, facts(0), 'False TooFewCopies'],
    [5, facts(0, { isRefused: true }), 'False NoRoom'],
    [5, facts(1, { isRefused: true }), 'True Copied'],
    [0, facts(2), 'False TooFewCopies'],
    [0, facts(0), 'Unknown NotReported'],
    [1, facts(0, { isDurable: true }), 'True DurableCache'],
    [0, facts(0, { isDurable: true }), 'Unknown NotReported'],
    [1, facts(0, { isDurable: undefined }), 'False TooFewCopies'],
  ];
  for (const [servers, copies, expected] of cases) {
    it(`with ${servers} servers and ${JSON.stringify(copies)}: ${expected}`, () => {
      assert.equal(conditionOf(viewOf(servers, copies)), expected);
    });
  }

  for (const [node, nodes, expected, count] of [
    ['a', ['a', 'a'], 'False OneNode', 1],
    ['a', ['a', 'b'], 'True Copied', 2],
    ['a', ['a', undefined], 'True Copied', undefined],
    [undefined, ['a', 'a'], 'True Copied', undefined],
  ] as const) {
    it(`with policy servers on ${node ?? 'an unknown node'}, and controllers on ${nodes.join(' and ')}: ${expected}`, () => {
      const view = viewOf(2, facts(2, { nodes }), WASM, node);
      assert.equal(conditionOf(view), expected);
      assert.equal(modulesKept(view, {}, [], 0).copies?.nodes, count);
    });
  }

  it('is true on one node with a cache that outlives pods', () => {
    assert.equal(conditionOf(viewOf(2, facts(2, { nodes: ['a'], isDurable: true }), WASM, 'a')), 'True DurableCache');
  });

  it('is not said of builtin modules', () => {
    const before = [{ type: MODULES_KEPT, status: 'True' } as Condition];
    assert.equal(conditionOf(viewOf(2, facts(2), 'builtin:cel@1.0.0'), before), undefined);
  });

  it('stays as it was until controllers have answered', () => {
    const before = { copies: { servers: 2, controllers: 2 } };
    const { copies } = modulesKept(viewOf(1, undefined), before, [], 0);
    assert.deepEqual(copies, before.copies);
  });

  it('does not count what replicas cannot write to their disks', () => {
    const view = viewOf(2, facts(1));
    const [first] = view.replicas ?? [];
    const unkept = { state: 'Serving', reason: '', message: '', nextRetry: undefined, isUncached: true } as const;
    const replicas = first === undefined ? [] : [first, { ...first, revisions: new Map([[1, unkept]]) }];
    assert.equal(conditionOf({ ...view, replicas }), 'False TooFewCopies');
  });
});
