import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { checkPodSecurity } from './admission.ts';
import type { PodSecurityVerdict } from './admission.ts';
import { parsePodSecuritySettings } from './settings.ts';
import type { PodSecuritySettings } from './settings.ts';

type Json = Record<string, unknown>;

const PRIVILEGED_POD = { containers: [{ name: 'a', image: 'x', securityContext: { privileged: true } }] };
const PLAIN_POD = { containers: [{ name: 'a', image: 'x' }] };
const DETAIL = 'privileged (container "a" must not set securityContext.privileged=true)';

function settings(json: unknown): PodSecuritySettings {
  const parsed = parsePodSecuritySettings(json);
  assert.ok(parsed.settings !== undefined, JSON.stringify(parsed.problems));
  return parsed.settings;
}

function podRequest(spec: unknown, more: Json = {}): Json {
  return {
    uid: '1',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    namespace: 'team',
    operation: 'CREATE',
    userInfo: { username: 'alice' },
    object: { metadata: { name: 'p' }, spec },
    ...more,
  };
}

function update(spec: unknown, oldSpec: unknown, more: Json = {}): Json {
  return podRequest(spec, { operation: 'UPDATE', oldObject: { metadata: {}, spec: oldSpec }, ...more });
}

function workloadRequest(group: string, resource: string, object: unknown, more: Json = {}): Json {
  return podRequest(undefined, { kind: {}, resource: { group, version: 'v1', resource }, object, ...more });
}

const BASELINE = settings({ enforce: 'baseline' });

const ACCEPTED: PodSecurityVerdict = { accepted: true, warnings: [], auditAnnotations: {}, violations: [] };

test('a pod below the enforced level is rejected with the message of an API server', () => {
  const { violations, ...verdict } = checkPodSecurity(podRequest(PRIVILEGED_POD), BASELINE);
  assert.deepEqual(verdict, {
    accepted: false,
    message: `violates PodSecurity "baseline:latest": ${DETAIL}`,
    code: 403,
    warnings: [],
    auditAnnotations: { 'enforce-policy': 'baseline:latest' },
  });
  assert.deepEqual(violations[0]?.fields, ['spec.containers[0].securityContext.privileged']);
});

test('audit and warn allow, with an annotation and a warning', () => {
  const verdict = checkPodSecurity(
    podRequest(PRIVILEGED_POD),
    settings({ audit: { level: 'baseline', version: 'v1.20' }, warn: 'baseline' }),
  );
  assert.equal(verdict.accepted, true);
  assert.deepEqual(verdict.warnings, [`would violate PodSecurity "baseline:latest": ${DETAIL}`]);
  assert.deepEqual(verdict.auditAnnotations, {
    'enforce-policy': 'privileged:latest',
    'audit-violations': `would violate PodSecurity "baseline:v1.20": ${DETAIL}`,
  });
  assert.equal(verdict.violations.length, 1);
});

test('with all modes privileged, the object is not read', () => {
  const verdict = checkPodSecurity(podRequest('no pod'), settings({ enforce: 'privileged' }));
  assert.deepEqual(verdict, { ...ACCEPTED, auditAnnotations: { 'enforce-policy': 'privileged:latest' } });
});

const template = (spec: unknown): Json => ({ metadata: { labels: { app: 'a' } }, spec });
const WORKLOADS: readonly (readonly [string, string, (spec: unknown) => Json, string])[] = [
  ['', 'podtemplates', (spec) => ({ template: template(spec) }), 'template.spec'],
  ['', 'replicationcontrollers', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  ['apps', 'daemonsets', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  ['apps', 'deployments', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  ['apps', 'replicasets', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  ['apps', 'statefulsets', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  ['batch', 'jobs', (spec) => ({ spec: { template: template(spec) } }), 'spec.template.spec'],
  [
    'batch',
    'cronjobs',
    (spec) => ({ spec: { jobTemplate: { spec: { template: template(spec) } } } }),
    'spec.jobTemplate.spec.template.spec',
  ],
];

for (const [group, resource, objectOf, path] of WORKLOADS) {
  test(`${resource} get warnings by default, and are rejected with workloads: enforce`, () => {
    const request = workloadRequest(group, resource, objectOf(PRIVILEGED_POD));
    const warned = checkPodSecurity(request, BASELINE);
    assert.equal(warned.accepted, true);
    assert.deepEqual(warned.warnings, [`would violate PodSecurity "baseline:latest": ${DETAIL}`]);
    assert.deepEqual(warned.auditAnnotations, {});
    assert.deepEqual(warned.violations[0]?.fields, [`${path}.containers[0].securityContext.privileged`]);

    const rejected = checkPodSecurity(request, settings({ enforce: 'baseline', workloads: 'enforce' }));
    assert.equal(rejected.message, `violates PodSecurity "baseline:latest": ${DETAIL}`);
    assert.equal(rejected.code, 403);

    assert.deepEqual(checkPodSecurity(workloadRequest(group, resource, objectOf(PLAIN_POD)), BASELINE), ACCEPTED);
    assert.deepEqual(checkPodSecurity({ ...request, subResource: 'scale' }, BASELINE), ACCEPTED);
  });
}

test('an existing enforced workload can be changed as long as its template stays', () => {
  const enforced = settings({ enforce: 'baseline', workloads: 'enforce' });
  const deployment = (replicas: number, spec: unknown): Json => ({ spec: { replicas, template: template(spec) } });
  const change = (object: Json, oldObject: Json): Json =>
    workloadRequest('apps', 'deployments', object, { operation: 'UPDATE', oldObject });

  const scaled = checkPodSecurity(change(deployment(0, PRIVILEGED_POD), deployment(3, PRIVILEGED_POD)), enforced);
  assert.equal(scaled.accepted, true);
  assert.equal(scaled.warnings.length, 1);
  const changed = checkPodSecurity(change(deployment(3, PRIVILEGED_POD), deployment(3, PLAIN_POD)), enforced);
  assert.equal(changed.accepted, false);
});

test('only a replication controller may have no template', () => {
  assert.deepEqual(checkPodSecurity(workloadRequest('', 'replicationcontrollers', { spec: {} }), BASELINE), ACCEPTED);
  const { warnings } = checkPodSecurity(workloadRequest('apps', 'deployments', { spec: {} }), BASELINE);
  assert.deepEqual(warnings, [
    'would violate PodSecurity "baseline:latest": malformed pod (spec.template: expected an object, got nothing)',
  ]);
});

test('other resources are allowed', () => {
  for (const [group, resource] of [
    ['', 'services'],
    ['apps', 'pods'],
    ['example.com', 'deployments'],
  ] as const) {
    assert.deepEqual(checkPodSecurity(workloadRequest(group, resource, { spec: PRIVILEGED_POD }), BASELINE), ACCEPTED);
  }
});

test('deletions and connections are accepted', () => {
  for (const operation of ['DELETE', 'CONNECT']) {
    assert.deepEqual(checkPodSecurity(podRequest(PRIVILEGED_POD, { operation }), BASELINE), ACCEPTED);
  }
});

test('subresources that cannot change a pod are accepted, others are checked', () => {
  for (const subResource of ['exec', 'attach', 'binding', 'eviction', 'log', 'portforward', 'proxy', 'status']) {
    assert.deepEqual(checkPodSecurity(podRequest(PRIVILEGED_POD, { subResource }), BASELINE), ACCEPTED);
  }
  for (const subResource of ['ephemeralcontainers', 'resize', 'of-the-future', '']) {
    assert.equal(checkPodSecurity(podRequest(PRIVILEGED_POD, { subResource }), BASELINE).accepted, false);
  }
});

test('an update of a pod is checked when it changes images or adds containers', () => {
  const [container] = PRIVILEGED_POD.containers;
  const image = { containers: [{ ...container, image: 'y' }] };
  const debug = { ...PRIVILEGED_POD, ephemeralContainers: [{ name: 'd', image: 'x' }] };
  const isChecked = (spec: unknown, oldSpec: unknown): boolean =>
    !checkPodSecurity(update(spec, oldSpec), BASELINE).accepted;
  assert.equal(isChecked(PRIVILEGED_POD, PRIVILEGED_POD), false);
  assert.equal(isChecked(PRIVILEGED_POD, PLAIN_POD), false);
  assert.equal(isChecked(debug, debug), false);
  assert.equal(isChecked(PRIVILEGED_POD, debug), false);
  assert.equal(isChecked(PRIVILEGED_POD, image), true);
  assert.equal(isChecked({ ...PRIVILEGED_POD, initContainers: [{}] }, PRIVILEGED_POD), true);
  assert.equal(isChecked({ containers: [container, container] }, PRIVILEGED_POD), true);
  assert.equal(isChecked(debug, PRIVILEGED_POD), true);
  assert.equal(isChecked(debug, { ...debug, ephemeralContainers: [{ name: 'd', image: 'y' }] }), true);
  // An old pod that cannot be read equals none.
  assert.equal(isChecked(PRIVILEGED_POD, { containers: 'a' }), true);
});

test('namespaces, users and runtime classes can be exempt', () => {
  const exempting = (exemptions: Json): PodSecuritySettings => settings({ enforce: 'baseline', exemptions });
  const request = podRequest({ ...PRIVILEGED_POD, runtimeClassName: 'kata' });
  for (const [exemptions, reason] of [
    [{ namespaces: ['team'] }, 'namespace'],
    [{ usernames: ['alice'] }, 'user'],
    [{ runtimeClasses: ['kata'] }, 'runtimeClass'],
  ] as const) {
    assert.deepEqual(checkPodSecurity(request, exempting(exemptions)), {
      ...ACCEPTED,
      auditAnnotations: { exempt: reason },
    });
  }
  const others = exempting({ namespaces: ['teams'], usernames: ['Alice'], runtimeClasses: ['kata2'] });
  assert.equal(checkPodSecurity(request, others).accepted, false);
  assert.equal(checkPodSecurity({ ...request, namespace: ['team'], userInfo: null }, others).accepted, false);
});

test('an invalid pod is not exempt by its runtime class', () => {
  const exempt = settings({ enforce: 'baseline', exemptions: { runtimeClasses: ['kata'] } });
  const verdict = checkPodSecurity(podRequest({ runtimeClassName: 'kata', hostPID: 'true' }), exempt);
  assert.equal(
    verdict.message,
    'violates PodSecurity "baseline:latest": malformed pod (spec.hostPID: expected true or false, got text)',
  );
});

test('a request without a pod is malformed', () => {
  const { message } = checkPodSecurity({ ...podRequest(PLAIN_POD), object: null }, BASELINE);
  assert.equal(
    message,
    'violates PodSecurity "baseline:latest": malformed pod (object: expected an object, got nothing)',
  );
});

test('a hand-written request needs either resource or kind', () => {
  const { resource: _resource, ...byKind } = podRequest(PRIVILEGED_POD);
  assert.equal(checkPodSecurity(byKind, BASELINE).code, 403);
  const { kind: _kind, ...nothing } = byKind;
  assert.equal(checkPodSecurity(nothing, BASELINE).code, 400);
  assert.equal(checkPodSecurity([], BASELINE).code, 400);
  assert.equal(checkPodSecurity({ ...byKind, operation: 'create' }, BASELINE).code, 400);
});

test('namespace labels override the settings', () => {
  const label = (name: string): string => `pod-security.kubernetes.io/${name}`;
  const check = (labels: Record<string, string>): PodSecurityVerdict =>
    checkPodSecurity(podRequest(PRIVILEGED_POD), BASELINE, labels);

  const relaxed = check({ [label('enforce')]: 'privileged' });
  assert.deepEqual(relaxed, { ...ACCEPTED, auditAnnotations: { 'enforce-policy': 'privileged:latest' } });
  const older = check({ [label('enforce-version')]: 'v1.2' });
  assert.equal(older.message, `violates PodSecurity "baseline:v1.2": ${DETAIL}`);
  const unreadable = check({ [label('enforce')]: 'strict', [label('warn-version')]: '1' });
  assert.match(unreadable.message ?? '', /^violates PodSecurity "restricted:latest": /);
  assert.equal(
    unreadable.auditAnnotations.error,
    'Failed to parse policy: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1": must be "latest" or "v1.x"]',
  );
});

test('workloads get warnings by the enforced level, unless warn differs', () => {
  const request = workloadRequest('apps', 'deployments', { spec: { template: template(PRIVILEGED_POD) } });
  const warnings = (json: unknown, labels?: Record<string, string>): number =>
    checkPodSecurity(request, settings(json), labels).warnings.length;
  assert.equal(warnings({ enforce: 'baseline' }), 1);
  assert.equal(warnings({ enforce: 'baseline', warn: 'privileged' }), 0);
  const stricter = { 'pod-security.kubernetes.io/enforce': 'baseline' };
  assert.equal(warnings({ enforce: 'privileged', warn: 'privileged' }, stricter), 1);
});

test('any JSON is answered, and a privileged pod never passes', () => {
  const member = fc.oneof(fc.constant({}), fc.jsonValue());
  const junk = fc.record({ userInfo: member, namespace: member, oldObject: member, subResource: member, kind: member });
  fc.assert(
    fc.property(fc.jsonValue(), junk, (json, more) => {
      checkPodSecurity(json, BASELINE);
      checkPodSecurity(podRequest(json), BASELINE);
      checkPodSecurity(workloadRequest('apps', 'jobs', json), BASELINE);
      assert.equal(checkPodSecurity(podRequest(PRIVILEGED_POD, more), BASELINE).accepted, false);
    }),
    { numRuns: 1_000 },
  );
});
