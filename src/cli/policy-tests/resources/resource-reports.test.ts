import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manifestObjects, objectText } from '../../manifest-objects.ts';
import type { FilePolicy } from '../../policy/file-policy.ts';
import { policiesIn } from '../../policy/policy-files.ts';
import { FieldLines, fieldIn } from './field-lines.ts';
import { resourceChecks } from './resource-checks.ts';
import { resourceData } from './resource-data.ts';
import type { Outcome, PolicyResult, ResourceReport } from './resource-report.ts';
import { resourceText } from './resource-text.ts';

const MANIFESTS = `# Source: shop/templates/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  template:
    spec:
      containers:
      - name: one
        image: a:1
      - name: two
        image: b:latest
`;

const { policies } = policiesIn([
  { text: 'first: {module: builtin:cel}\nsecond: {module: builtin:cel}', name: 'policies.yml', folder: '/' },
]);
const [first = assert.fail(), second = assert.fail()] = policies;

function result(
  policy: FilePolicy,
  outcome: Outcome,
  message?: string,
  changes: Partial<PolicyResult> = {},
): PolicyResult {
  const said = message === undefined ? {} : { message };
  return {
    policy,
    outcome,
    ...said,
    warnings: [],
    auditAnnotations: {},
    isMutated: false,
    log: [],
    durationMs: 1,
    ...changes,
  };
}

function report(
  results: readonly PolicyResult[],
  text = MANIFESTS,
  changes: Partial<ResourceReport> = {},
): ResourceReport {
  const file = { name: 'web.yaml', isInput: false, text };
  const [found = assert.fail()] = manifestObjects(text, file.name).objects;
  const { object } = found;
  const resource = { ...found, file };
  return {
    policies,
    problems: [],
    resources: [{ resource, text: objectText(object), results, before: object, after: object }],
    warnings: [],
    notes: [],
    durationMs: 5,
    ...changes,
  };
}

const textOf = (one: ResourceReport, withSkipped = false): string =>
  resourceText(one, new FieldLines(one), { color: false, withSkipped });

const DENIED = result(first, 'fail', 'spec.template.spec.containers[1].image: not latest');

describe('resourceText', () => {
  it('says where each denial is, and then lists all results that count', () => {
    assert.equal(
      textOf(report([DENIED, result(second, 'skip', 'no rule')])),
      `✘ Deployment shop/web › first  web.yaml:14 (shop/templates/web.yaml)
    │ spec.template.spec.containers[1].image: not latest

RESOURCE              POLICY   RESULT   MESSAGE
Deployment shop/web   first    fail

✘ 1 resource, 2 policies: 0 pass, 1 fail, 1 do not apply in 5 ms
`,
    );
    assert.match(
      textOf(report([DENIED, result(second, 'skip', 'no rule')]), true),
      /^Deployment shop\/web +second +skip +no rule$/m,
    );
  });

  it('fits a table into a terminal, with all of its columns', () => {
    const name = 'a-release-of-shop-with-a-long-name-as-charts-have-them';
    const long = MANIFESTS.replace('name: web', `name: ${name}`).replace('namespace: shop', 'namespace: production');
    const one = report([DENIED, result(second, 'pass')], long);
    const text = resourceText(one, new FieldLines(one), { color: false, withSkipped: false, width: 80 });
    const rows = text.split('\n').slice(-6, -3);
    assert.match(rows[0] ?? '', /^RESOURCE +POLICY +RESULT +MESSAGE$/);
    assert.match(rows[1] ?? '', /^Deploymen.*….*-charts-have-them +first +fail/);
    assert.ok(
      rows.every((row) => row.length <= 80),
      text,
    );
    assert.match(text, new RegExp(`^✘ Deployment production/${name} › first`));
  });

  it('shows what policies changed', () => {
    const mutated = report([result(first, 'pass', undefined, { isMutated: true })]);
    const resources = mutated.resources.map((one) => ({
      ...one,
      after: { ...manifestObjects(MANIFESTS, '').objects[0]?.object, spec: {} },
    }));
    const text = textOf({ ...mutated, resources });
    assert.match(text, /^± Deployment shop\/web {2}changed by first$/m);
    assert.match(text, /^ {4}│ \+ spec: \{\}$/m);
  });

  it('names policies that cannot be evaluated, with file and line', () => {
    const problems = [{ policy: second, message: 'settings are not valid:\nno expression', isUnreadable: false }];
    assert.match(
      textOf(report([], MANIFESTS, { problems })),
      /^✘ second cannot be evaluated {2}policies\.yml:2\n {4}│ settings are not valid:\n {4}│ no expression\n\n✘ 1 resource, 2 policies: 0 pass, 1 cannot be evaluated/,
    );
  });

  it('lets no text of others be a command of GitHub or of a terminal', () => {
    const hostile = 'x\n::error file=a::b\n\u001B[2J\r\n::stop-commands::t';
    const text = textOf(
      report([
        result(first, 'fail', hostile, { log: [{ policy: 'first', level: 'info', message: hostile, fields: {} }] }),
      ]),
    );
    assert.doesNotMatch(text, /^\s*::|[^\P{Cc}\n]/mu);
  });
});

describe('resourceData', () => {
  it('has all results, and the object as policies left it', () => {
    const one = report([DENIED, result(second, 'skip', 'no rule')]);
    const [resource = assert.fail()] = resourceData(one, new FieldLines(one)).resources;
    assert.deepEqual(
      { ...resource, results: resource.results.map(({ policy, result: outcome, line }) => [policy, outcome, line]) },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        namespace: 'shop',
        name: 'web',
        file: 'web.yaml',
        line: 2,
        template: 'shop/templates/web.yaml',
        results: [
          ['first', 'fail', 14],
          ['second', 'skip', 2],
        ],
      },
    );
  });
});

describe('resourceChecks', () => {
  it('have the line of the field, and the reason why a policy does not apply', () => {
    const one = report([DENIED, result(second, 'skip', 'no rule')]);
    const { groups } = resourceChecks(one, new FieldLines(one));
    assert.deepEqual(
      groups.flatMap(({ checks }) => checks.map(({ name, status, place }) => [name, status, place?.line])),
      [
        ['Deployment shop/web › first', 'failed', 14],
        ['Deployment shop/web › second', 'skipped', 2],
      ],
    );
    assert.equal(groups[0]?.checks[1]?.message, 'no rule (of shop/templates/web.yaml)');
  });

  it('have a policy that cannot be evaluated as an error of its file', () => {
    const one = report([], MANIFESTS, { problems: [{ policy: second, message: 'no', isUnreadable: true }] });
    const [group] = resourceChecks(one, new FieldLines(one)).groups;
    assert.deepEqual(
      group?.checks.map(({ name, status, place }) => [name, status, place]),
      [['second can be evaluated', 'error', { file: 'policies.yml', line: 2 }]],
    );
  });
});

describe('fieldIn a pod template', () => {
  const template = { spec: { containers: [{ image: 'x' }] } };
  const object = { kind: 'CronJob', spec: { jobTemplate: { spec: { template } } } };
  const place = 'pods would be rejected, in the pod template (spec.jobTemplate.spec.template): ';
  const path = ['spec', 'jobTemplate', 'spec', 'template'];
  for (const [text, below] of [
    ['spec.containers[0].image: not pinned', ['spec', 'containers', 0, 'image']],
    ['object.spec.containers: too many', ['spec', 'containers']],
    ['spec.containers[1].image: not pinned', []],
    ['no', []],
  ] as const) {
    it(`finds ${text}`, () => assert.deepEqual(fieldIn(`${place}${text}`, object), [...path, ...below]));
  }
});

describe('fieldIn', () => {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a.b' }, spec: { containers: [{ image: 'x' }] } };
  for (const [message, path] of [
    ['spec.containers[0].image must be pinned', ['spec', 'containers', 0, 'image']],
    ['object.spec.containers: too many', ['spec', 'containers']],
    ['use metadata.labels, not "spec.containers"', ['spec', 'containers']],
    ['spec.containers[1].image must be pinned', undefined],
    ['see example.com/docs.', undefined],
    ['spec is wrong', undefined],
    ['spec.__proto__.constructor', undefined],
    [`${'a.'.repeat(5_000)}b`, undefined],
  ] as const) {
    it(`finds ${path?.join('.') ?? 'nothing'} in ${message.slice(0, 50)}`, () => {
      assert.deepEqual(fieldIn(message, object), path);
    });
  }
});
