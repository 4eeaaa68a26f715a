import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { createFailedPolicy } from '../loaded-policy.ts';
import { reasonOf } from '../testing/reason-of.ts';
import { POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { label, patchedObject } from '../testing/pod-labels.ts';
import { deployment, deploymentReview, podReview } from '../testing/reviews.ts';

const TEMPLATES = 'validating.ignore.equivalent.cluster.templates';
const MUTATING_TEMPLATES = 'mutating.ignore.equivalent.cluster.templates';
const TEMPLATE: JsonObject = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web' }] } };

const denies = (): unknown => ({ accepted: false, message: 'spec.containers[0].image: not pinned', warnings: ['w'] });
const metadataOf = ({ object }: JsonObject): JsonObject => (object as JsonObject)['metadata'] as JsonObject;

describe('the bucket of pod templates', () => {
  it('denies a workload with Enforce, and says where', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Enforce' }, answer: denies });
    const { verdict, observations } = table.evaluate(TEMPLATES, deploymentReview(TEMPLATE));
    assert.deepEqual(verdict, {
      allowed: false,
      message: 'cap/a: in the pod template (spec.template): spec.containers[0].image: not pinned',
      warnings: ['cap/a: in the pod template (spec.template): w'],
      auditAnnotations: null,
    });
    assert.deepEqual(
      observations.map(({ kind, mode, accepted }) => ({ kind, mode, accepted })),
      [{ kind: 'Deployment', mode: 'protect', accepted: false }],
    );
  });

  it('admits a workload with Warn, with a warning', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Warn' }, answer: denies });
    const { verdict, observations } = table.evaluate(TEMPLATES, deploymentReview(TEMPLATE));
    assert.deepEqual(verdict, {
      allowed: true,
      warnings: [
        'cap/a: in the pod template (spec.template): w',
        'cap/a: pods would be rejected, in the pod template (spec.template): spec.containers[0].image: not pinned',
      ],
      auditAnnotations: null,
    });
    assert.deepEqual(
      observations.map(({ mode, accepted }) => ({ mode, accepted })),
      [{ mode: 'monitor', accepted: false }],
    );
  });

  it('does not evaluate policies that do not opt in, nor the workload itself', () => {
    const table = new TestTable();
    const refuse = (): never => assert.fail('evaluated');
    table.add({ name: 'ignore', spec: { podTemplates: 'Ignore' }, answer: refuse });
    table.add({ name: 'absent', answer: refuse });
    table.add({ name: 'newer', spec: { podTemplates: 'Audit' }, answer: refuse });
    table.add({
      name: 'of-workloads',
      spec: { podTemplates: 'Enforce', rules: [{ ...POD_RULE, apiGroups: ['apps'], resources: ['deployments'] }] },
      answer: refuse,
    });
    table.add({ name: 'updates', spec: { podTemplates: 'Enforce', rules: [{ ...POD_RULE, operations: ['UPDATE'] }] } });
    assert.deepEqual(table.evaluate(TEMPLATES, deploymentReview(TEMPLATE)).observations, []);
  });

  it('still evaluates the pods, whatever workloads say', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Warn' }, answer: denies });
    assert.match(JSON.stringify(reasonOf(table.evaluate(VALIDATING).verdict)), /cap\/a: spec.containers/);
  });

  it('matches selectors and conditions of the pod', () => {
    const table = new TestTable();
    const spec = { podTemplates: 'Enforce', objectSelector: { matchLabels: { app: 'web' } } };
    table.add({ name: 'labels', spec });
    table.add({ name: 'other-labels', spec: { ...spec, objectSelector: { matchLabels: { app: 'db' } } } });
    const condition = (expression: string): JsonObject => ({ ...spec, matchConditions: [{ name: 'c', expression }] });
    table.add({ name: 'containers', spec: condition('object.spec.containers.size() == 1') });
    const creator = 'system:serviceaccount:kube-system:replicaset-controller';
    table.add({ name: 'user', spec: condition(`request.userInfo.username != '${creator}'`) });
    const { observations } = table.evaluate(TEMPLATES, deploymentReview(TEMPLATE));
    assert.deepEqual(
      observations.map(({ policy }) => policy),
      ['kw.cap.containers', 'kw.cap.labels'],
    );
  });

  it('evaluates policies of the namespace only there', () => {
    const table = new TestTable();
    for (const namespace of ['default', 'other']) {
      table.add({ name: 'a', namespace, spec: { podTemplates: 'Enforce' }, answer: denies });
    }
    const bucket = TEMPLATES.replace('cluster', 'namespaced');
    const { observations } = table.evaluate(bucket, deploymentReview(TEMPLATE));
    assert.deepEqual(
      observations.map(({ policy }) => policy),
      ['kw.ap.default.a'],
    );
  });

  it('admits what contains no template to check, and requests for other kinds', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Enforce' }, answer: denies });
    const unchanged = { operation: 'UPDATE', oldObject: deployment(TEMPLATE) };
    for (const review of [
      podReview(),
      deploymentReview('text'),
      deploymentReview(null),
      deploymentReview(TEMPLATE, unchanged),
      deploymentReview(TEMPLATE, { operation: 'DELETE' }),
    ]) {
      const { verdict, observations } = table.evaluate(TEMPLATES, review);
      assert.deepEqual([verdict.allowed, observations], [true, []]);
    }
  });

  it('is known to servers without policies in it, as during an upgrade', () => {
    assert.equal(new TestTable().evaluate(TEMPLATES, deploymentReview(TEMPLATE)).verdict.allowed, true);
  });

  it('leaves the bucket with the last policy that checks templates', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Enforce' }, answer: denies });
    table.add({ name: 'a', answer: denies });
    assert.equal(table.table.hasBucket(TEMPLATES), false);
    assert.equal(table.evaluate(TEMPLATES, deploymentReview(TEMPLATE)).verdict.allowed, true);
  });

  it('only counts what a policy in monitor mode would have rejected, by the name of the workload', () => {
    const table = new TestTable();
    table.add({ name: 'a', spec: { podTemplates: 'Enforce', mode: 'monitor' }, answer: denies });
    const { verdict, monitored } = table.evaluate(TEMPLATES, deploymentReview(TEMPLATE));
    assert.equal(verdict.allowed, true);
    assert.deepEqual(
      monitored.map(({ kind, name, user, message }) => ({ kind, name, user, message })),
      [
        {
          kind: 'Deployment',
          name: 'web',
          user: 'kubernetes-admin',
          message: 'spec.containers[0].image: not pinned',
        },
      ],
    );
  });

  it('treats a policy that gives no verdict as for pods, and never rejects with Warn', () => {
    const [warn, enforce] = ['Warn', 'Enforce'].map((podTemplates) => {
      const table = new TestTable();
      const { id, match } = table.add({ name: 'a', spec: { podTemplates } });
      table.table.set(createFailedPolicy({ id, message: 'no module' }, table.options), match);
      return table.evaluate(TEMPLATES, deploymentReview(TEMPLATE)).verdict;
    });
    assert.equal(warn?.allowed, true);
    assert.match(warn?.warnings?.[0] ?? '', /pods would be rejected, in the pod template \(spec.template\): no module/);
    assert.equal(enforce?.allowed, false);
  });

  it('evaluates groups', () => {
    const table = new TestTable();
    const spec = { podTemplates: 'Enforce', policies: { m: { module: 'm.wasm' } }, expression: 'm()', message: 'no' };
    table.add({ name: 'g', spec, answer: denies });
    const { message, causes } = table.evaluate(TEMPLATES, deploymentReview(TEMPLATE)).verdict;
    assert.equal(message, 'capg/g: in the pod template (spec.template): no');
    assert.deepEqual(causes, [{ field: 'spec.policies.m', message: 'spec.containers[0].image: not pinned' }]);
  });

  it('reviews templates that are nested as deep as reviews may be, and large ones', () => {
    const table = new TestTable();
    const sizes: number[] = [];
    const answer = (request: JsonObject): unknown => {
      sizes.push(JSON.stringify(request['object']).length);
      return label('a')(request);
    };
    table.add({ name: 'a', spec: { podTemplates: 'Enforce', mutating: true }, answer });
    let deep: JsonValue = {};
    for (let level = 0; level < 950; level += 1) {
      deep = { x: deep };
    }
    const large = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, index) => [`__proto__${index}`, 'x'.repeat(1_000)]),
    );
    for (const spec of [deep, large, JSON.parse('{"__proto__": {"polluted": true}}') as JsonObject]) {
      const template = { metadata: { labels: { b: 'c' } }, spec };
      const evaluated = table.evaluate(MUTATING_TEMPLATES, deploymentReview(template));
      const expected = deployment({ spec, metadata: { labels: { b: 'c', a: 'x' } } });
      assert.deepEqual(patchedObject(evaluated, deployment(template)), expected);
    }
    assert.ok((sizes[1] ?? 0) > 3_000_000);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  describe('for mutating policies', () => {
    it('changes the template, each policy after the other', () => {
      const table = new TestTable();
      const seen: JsonValue[] = [];
      table.add({ name: 'a', spec: { podTemplates: 'Enforce', mutating: true }, answer: label('a') });
      table.add({
        name: 'b',
        spec: { podTemplates: 'Enforce', mutating: true },
        answer: (request) => {
          seen.push(metadataOf(request)['labels'] ?? null);
          return label('b')(request);
        },
      });
      table.add({ name: 'c', spec: { podTemplates: 'Warn', mutating: true }, answer: label('c') });
      const review = deploymentReview(TEMPLATE);
      const evaluated = table.evaluate(MUTATING_TEMPLATES, review);
      const labels = { app: 'web', a: 'x', b: 'x' };
      assert.deepEqual(
        patchedObject(evaluated, deployment(TEMPLATE)),
        deployment({ ...TEMPLATE, metadata: { labels } }),
      );
      assert.deepEqual(seen[0], { app: 'web', a: 'x' });
      assert.equal(evaluated.verdict.warnings, null);
    });

    it('changes nothing of the workload that is not in a template', () => {
      const table = new TestTable();
      const answer = (request: JsonObject): unknown => ({
        accepted: true,
        mutated_object: { ...(request['object'] as JsonObject), kind: 'Evil', metadata: { labels: { app: 'web' } } },
      });
      table.add({ name: 'a', spec: { podTemplates: 'Enforce', mutating: true }, answer });
      const { verdict } = table.evaluate(MUTATING_TEMPLATES, deploymentReview(TEMPLATE));
      assert.deepEqual([verdict.allowed, verdict.patch], [true, undefined]);
    });

    it('gives no patch to a validating webhook', () => {
      const table = new TestTable();
      table.add({ name: 'a', spec: { podTemplates: 'Enforce', mutating: true }, answer: label('a') });
      assert.equal(table.evaluate(TEMPLATES, deploymentReview(TEMPLATE)).verdict.patch, undefined);
    });
  });
});
