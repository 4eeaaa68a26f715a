import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../../resources/index.ts';
import { CLUSTER, dependency, lookupIn, policyObject, rootPolicy, template } from '../testing/dependency-scene.ts';
import type { DependencyLookup } from '../unmet-dependencies.ts';
import { DependencyGraph } from './dependency-graph.ts';
import { explainPending } from './explain-pending.ts';
import { graphPolicy } from './graph-policy.ts';

const graphOf = (...policies: readonly KubernetesObject[]): DependencyGraph =>
  new DependencyGraph(
    policies.map((policy) => graphPolicy(policy, { clusterNamespace: CLUSTER, policiesOfSet: () => undefined })),
    CLUSTER,
  );
const entry = (message: string, lastTimestamp: string) => ({ message, lastTimestamp });
const copy = (name: string, compliant: string, ...history: readonly unknown[]): KubernetesObject =>
  policyObject(`default.${name}`, { compliant, details: [{ compliant: 'Compliant' }, { compliant, history }] });
const explain = (graph: DependencyGraph, name: string, lookup: DependencyLookup, templateName?: string) =>
  explainPending(graph, { namespace: 'default', name }, lookup, templateName);

describe('explainPending', () => {
  const graph = graphOf(
    rootPolicy('kafka', [dependency('strimzi')]),
    rootPolicy('strimzi', [dependency('operators')]),
    rootPolicy('operators', []),
  );

  it('follows the chain to its root cause', () => {
    const lookup = lookupIn(
      copy('strimzi', 'Pending', entry('Pending; Dependencies were not satisfied.', '2026-01-02T12:05:00.123456Z')),
      copy(
        'operators',
        'NonCompliant',
        entry('NonCompliant; violation - namespaces [operators] not found', '2026-01-02T12:06:00Z'),
        entry('NonCompliant; violation - something else', '2026-01-02T12:04:00.000001Z'),
        entry('Compliant; notification - all well', '2026-01-02T12:00:00Z'),
      ),
    );
    const { sentences, rootCauses } = explain(graph, 'kafka', lookup);
    assert.deepEqual(sentences, [
      'policy default/kafka waits for policy default/strimzi, which is Pending since 2026-01-02T12:05:00Z: Dependencies were not satisfied.',
      'policy default/strimzi waits for policy default/operators, which is NonCompliant since 2026-01-02T12:04:00Z: violation - namespaces [operators] not found.',
    ]);
    assert.deepEqual(
      rootCauses.map(({ name, reason }) => [name, reason]),
      [['default.operators', 'Mismatch']],
    );
  });

  it('says that nothing is waited for, or that the policy does not exist', () => {
    const lookup = lookupIn(copy('strimzi', 'Compliant'), copy('operators', 'Compliant'));
    assert.deepEqual(explain(graph, 'kafka', lookup), {
      sentences: ['policy default/kafka waits for nothing.'],
      rootCauses: [],
    });
    assert.deepEqual(explain(graph, 'none', lookup).sentences, ['policy default/none does not exist.']);
    assert.deepEqual(explain(graph, 'kafka', lookup, 'x').sentences, ['policy default/kafka has no template x.']);
  });

  it('explains each reason', () => {
    const failing: DependencyLookup = ({ name }) => {
      switch (name) {
        case 'kind':
          return { type: 'no-such-kind' };
        case 'secret':
          return { type: 'forbidden', message: 'secrets "secret" is forbidden' };
        case 'slow':
          return { type: 'failed', message: 'timeout' };
        case 'stale':
          return {
            type: 'found',
            object: policyObject(name, { observedGeneration: 1 }, { metadata: { name, generation: 2 } }),
          };
        case 'new':
          return { type: 'found', object: policyObject(name, {}) };
        case 'well':
          return { type: 'found', object: policyObject(name, { compliant: 'Compliant' }) };
        default:
          return { type: 'not-found' };
      }
    };
    const names = ['kind', 'secret', 'slow', 'stale', 'new', 'gone'];
    const thing = { apiVersion: 'example.com/v1', kind: 'Thing', namespace: 'ns' };
    const dependencies = [
      ...names.map((name) => dependency(name, 'Compliant', thing)),
      dependency('well', 'NonCompliant', thing),
    ];
    assert.deepEqual(
      explain(graphOf(rootPolicy('a', dependencies)), 'a', failing).sentences.map((text) =>
        text.replace('policy default/a waits for Thing ns/', ''),
      ),
      [
        'kind, but the cluster has no kind Thing in example.com/v1: install its CRD.',
        'secret, which may not be read: secrets "secret" is forbidden.',
        'slow, which could not be read: timeout.',
        'stale, whose status is about an older spec.',
        'new, which has no status yet.',
        'gone, which does not exist.',
        'well, which is Compliant and must be NonCompliant.',
      ],
    );
  });

  it('ends at a cycle, and shows it', () => {
    const cyclic = graphOf(rootPolicy('a', [dependency('b')]), rootPolicy('b', [dependency('a')]));
    const { sentences, rootCauses } = explain(cyclic, 'a', lookupIn(copy('a', 'Pending'), copy('b', 'Pending')));
    assert.deepEqual(sentences, [
      'policy default/a waits for policy default/b, which waits for it in turn, for ever, in the cycle default/a → default/b → default/a: remove one of these dependencies.',
    ]);
    assert.equal(rootCauses.length, 1);
  });

  it('names the template that waits, and follows templates', () => {
    const config = (name: string) => dependency(name, 'Compliant', { kind: 'ConfigurationPolicy' });
    const ordered = graphOf(
      rootPolicy('a', [], [template('one', [dependency('gone')]), template('two', [config('one')]), template('three')]),
    );
    assert.deepEqual(explain(ordered, 'a', lookupIn(), 'two').sentences, [
      'ConfigurationPolicy two of policy default/a waits for ConfigurationPolicy one of policy default/a, which does not exist.',
      'ConfigurationPolicy one of policy default/a waits for Policy default.gone, which does not exist.',
    ]);
    assert.deepEqual(
      explain(ordered, 'a', lookupIn()).rootCauses.map(({ name }) => name),
      ['default.gone'],
    );
  });

  it('bounds what hostile policies make it print, on single lines', () => {
    const name = 'x\n\u001b[31m\u202e';
    const many = Array.from({ length: 400 }, (_, index) =>
      dependency(`${name}${index}`, 'Compliant', { kind: 'Thing' }),
    );
    const { sentences } = explain(graphOf(rootPolicy('a', many)), 'a', lookupIn());
    assert.equal(sentences.length, 50);
    assert.equal(
      sentences[0],
      String.raw`policy default/a waits for Thing x\u{a}\u{1b}[31m\u{202e}0, which does not exist.`,
    );
    const loud = lookupIn(copy('b', 'NonCompliant', entry(`NonCompliant; ${'y'.repeat(100_000)}`, '')));
    assert.ok((explain(graphOf(rootPolicy('a', [dependency('b')])), 'a', loud).sentences[0] ?? '').length < 500);
  });
});
