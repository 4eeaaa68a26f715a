import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import { apiVersionOf, knownKind, type OpenReport, reportDefinitions, REPORT_FORMATS } from '../../resources/index.ts';
import { REPORT_LABELS } from '../access-rules/report-labels.ts';
import { until } from '../testing/until.ts';
import { MAX_REPORT_RESULTS } from './report-changes.ts';
import { podFinding } from './testing/memory-findings.ts';
import { ReportScene } from './testing/report-scene.ts';

const { reports: REPORTS, clusterReports: CLUSTER_REPORTS } = REPORT_FORMATS.openreports;
const NAMESPACES = knownKind('v1', 'Namespace');
const KEY = { namespace: 'default', name: 'portcullis-1' };

describe('reports of findings', () => {
  it('have the form in which Policy Reporter shows them right', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    scene.findings.set([
      podFinding('web-1', { severity: 'high', category: 'Ownership' }),
      podFinding('web-1', { policyUid: 'policy-2', policy: 'cap/other', mode: 'monitor' }),
      podFinding('web-2', { result: 'wouldChange', rule: 'labels' }),
      podFinding('web-3', { result: 'error', reason: 'Timeout' }),
      podFinding('web-4', { result: 'skip', exception: 'shop/for-now' }),
    ]);
    await scene.untilResults(({ length }) => length === 5);
    const [report = assert.fail()] = await scene.reports();
    assert.equal(report.scope, undefined);
    assert.equal(report.source, 'portcullis');
    assert.deepEqual(report.summary, { pass: 0, fail: 1, warn: 2, error: 1, skip: 1 });
    const results = report.results ?? [];
    assert.equal(new Set(results.map(({ properties }) => properties?.['resultID'])).size, 5);
    assert.ok(results.every(({ resources }) => resources?.length === 1 && resources[0]?.uid !== undefined));
    const { timestamp, properties, ...first } = results[0] ?? assert.fail();
    assert.deepEqual(first, {
      source: 'portcullis',
      policy: 'cap/team',
      category: 'Ownership',
      severity: 'high',
      result: 'fail',
      scored: true,
      resources: [podFinding('web-1').object],
      message: 'say which team it belongs to',
    });
    assert.equal(timestamp?.seconds, Date.parse(properties?.['lastSeen'] ?? '') / 1000);
    assert.equal(properties?.['policyRevision'], '1');
    assert.deepEqual(
      results.map(({ result, properties: { wouldChange, mode, exception } = {} }) => [
        result,
        mode,
        wouldChange ?? exception,
      ]),
      [
        ['fail', 'protect', undefined],
        ['warn', 'monitor', undefined],
        ['warn', 'protect', 'true'],
        ['error', 'protect', undefined],
        ['skip', 'protect', 'shop/for-now'],
      ],
    );
  });

  it('are PolicyReports on request, with the severities that all releases of them have, and not written again', async () => {
    const format = REPORT_FORMATS.wgpolicyk8s;
    await using scene = await ReportScene.open({ format });
    await scene.start();
    const severities = ['critical', 'high', 'medium', 'low', 'info'] as const;
    const node = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' };
    scene.findings.set([
      ...severities.map((severity, index) => podFinding(`web-${index}`, { severity })),
      podFinding('a', { object: node }),
    ]);
    const results = await scene.untilResults(({ length }) => length === severities.length);
    assert.deepEqual(
      results.map(({ severity, properties }) => `${severity} ${properties?.['severity'] ?? ''}`),
      ['high critical', 'high ', 'medium ', 'low ', 'low info'],
    );
    const [report = assert.fail()] = await scene.reports();
    assert.deepEqual(
      [report.kind, report.apiVersion, report.metadata.name, report.source, report.results?.[0]?.source],
      ['PolicyReport', 'wgpolicyk8s.io/v1alpha2', 'portcullis-1', undefined, 'portcullis'],
    );
    await until(async () => (await scene.admin.list(format.clusterReports)).items.length === 1);
    await scene.start();
    await scene.quiet();
    assert.deepEqual(scene.writes, []);
  });

  it('of the API that was written before are deleted, and those of others stay', async () => {
    await using scene = await ReportScene.open();
    for (const definition of reportDefinitions(REPORT_FORMATS.wgpolicyk8s)) {
      await scene.admin.create(knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'), definition);
    }
    const type = REPORT_FORMATS.wgpolicyk8s.reports;
    const former = (name: string, labels: Readonly<Record<string, string>>): Promise<unknown> =>
      scene.admin.create(type, {
        apiVersion: apiVersionOf(type),
        kind: type.kind,
        metadata: { namespace: 'default', name, labels },
      });
    await former('portcullis-1', REPORT_LABELS);
    await former('theirs', { 'app.kubernetes.io/managed-by': 'kyverno' });
    await scene.start();
    const names = async (): Promise<readonly (string | undefined)[]> =>
      (await scene.admin.list(type)).items.map(({ metadata }) => metadata.name);
    await until(async () => (await names()).length === 1);
    assert.deepEqual(await names(), ['theirs']);
  });

  it('are ClusterReports for objects of no namespace', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    const object = { apiVersion: 'v1', kind: 'Namespace', name: 'shop', uid: 'u' };
    scene.findings.set([podFinding('a', { object })]);
    await until(
      async () => (await scene.admin.list(CLUSTER_REPORTS)).items[0]?.results?.[0]?.resources?.[0]?.name === 'shop',
    );
    assert.deepEqual(await scene.reports(), []);
  });

  it('are not written again after a restart, before and after everything is judged anew', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    scene.findings.set([podFinding('web-1'), podFinding('web-2')]);
    await scene.untilResults(({ length }) => length === 2);
    scene.findings.policies = undefined;
    scene.findings.set([]);
    await scene.start();
    await scene.quiet();
    scene.findings.policies = new Set(['policy-1']);
    scene.findings.changed();
    await scene.quiet();
    scene.findings.set([podFinding('web-2'), podFinding('web-1')]);
    scene.findings.settled.add('policy-1');
    scene.findings.changed();
    await scene.quiet();
    assert.deepEqual(scene.writes, []);
    assert.equal((await scene.results()).length, 2);
  });

  it('keep the id and the first time of a finding with another message, and cost nothing for another version of its object', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    scene.findings.set([podFinding('web-1')]);
    const [before] = await scene.untilResults(({ length }) => length === 1);
    // As if it had been written an hour ago.
    const hourAgo = new Date(Date.now() - 3_600_000);
    const written = `${hourAgo.toISOString().slice(0, -5)}Z`;
    const stored = await scene.admin.get(REPORTS, KEY);
    await scene.admin.update(REPORTS, {
      ...stored,
      results: (stored.results ?? []).map((result) => ({
        ...result,
        properties: { ...result.properties, firstSeen: written },
      })),
    });
    await scene.quiet();
    scene.writes = [];
    scene.findings.set([podFinding('web-1', { objectVersion: '8' })]);
    await scene.quiet();
    assert.deepEqual(scene.writes, []);
    scene.findings.set([podFinding('web-1', { objectVersion: '9', message: 'no team' })]);
    const [after] = await scene.untilResults(([one]) => one?.message === 'no team');
    assert.equal(after?.properties?.['resultID'], before?.properties?.['resultID']);
    assert.equal(after?.properties?.['firstSeen'], written);
    assert.notEqual(after?.properties?.['lastSeen'], written);
    assert.equal(after?.properties?.['objectResourceVersion'], '9');
  });

  it('lose what is settled and not found any more, and what is of a policy that is gone, and are deleted when empty', async () => {
    await using scene = await ReportScene.open();
    scene.findings.policies = new Set(['policy-1', 'policy-2']);
    await scene.start();
    scene.findings.set([podFinding('web-1'), podFinding('web-2'), podFinding('web-3', { policyUid: 'policy-2' })]);
    await scene.untilResults(({ length }) => length === 3);
    scene.findings.set([podFinding('web-1')]);
    await scene.quiet();
    assert.equal((await scene.results()).length, 3, 'nothing is settled yet');
    scene.findings.settled.add('policy-1');
    scene.findings.changed('default');
    await scene.untilResults(({ length }) => length === 2);
    scene.findings.policies = new Set(['policy-1']);
    scene.findings.changed();
    await scene.untilResults(({ length }) => length === 1);
    scene.findings.set([]);
    await until(async () => (await scene.reports()).length === 0);
  });

  it('are restored when somebody edits or deletes them', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    const edits: readonly ((report: OpenReport) => object)[] = [
      ({ results = [] }) => ({ results: results.slice(1) }),
      ({ results = [] }) => ({ results: results.map((one) => ({ ...one, result: 'pass' })) }),
      ({ results = [] }) => ({ results: [...results, ...results] }),
      ({ results = [] }) => ({ results: results.map((one) => ({ ...one, properties: {} })) }),
      ({ results = [] }) => ({ results: results.map((one) => ({ ...one, timestamp: { seconds: 1, nanos: 0 } })) }),
      () => ({ summary: { fail: 0 } }),
      () => ({ scope: { kind: 'Namespace', name: 'default' } }),
      () => ({ source: 'kyverno' }),
    ];
    const wanted = ({ summary, source, scope, results = [] }: OpenReport): unknown => ({
      summary,
      source,
      scope,
      results: new Map(
        results.map(({ message, result, resources, properties }) => [
          properties?.['resultID'],
          [message, result, resources],
        ]),
      ),
    });
    const write = async (message: string): Promise<OpenReport> => {
      scene.findings.set([podFinding('web-1', { message }), podFinding('web-2')]);
      await scene.untilResults((results) => results.some((one) => one.message === message));
      await scene.quiet();
      return await scene.admin.get(REPORTS, KEY);
    };
    for (const [index, edit] of edits.entries()) {
      // Writes that are alike are delayed more and more.
      const report = await write(`message ${index}`);
      await scene.admin.update(REPORTS, { ...report, ...edit(report) });
      await scene.quiet();
      assert.deepEqual(wanted(await scene.admin.get(REPORTS, KEY)), wanted(report), String(edit));
    }
    const report = await write('the last message');
    await scene.admin.delete(REPORTS, KEY);
    await scene.quiet();
    assert.deepEqual(wanted(await scene.admin.get(REPORTS, KEY)), wanted(report));
  });

  it('of others are never touched, whatever their name', async () => {
    await using scene = await ReportScene.open();
    const report = { apiVersion: 'openreports.io/v1alpha1', kind: 'Report', metadata: KEY, source: 'kyverno' };
    const theirs = await scene.admin.create(REPORTS, report);
    await scene.start();
    scene.findings.set([podFinding('web-1')]);
    await until(() => scene.lines.some(({ error }) => String(error).includes('labels')));
    const [result] = await scene.untilResults((results) => results.length === 1);
    assert.equal(result?.resources?.[0]?.name, 'web-1', 'a name that is taken hides no finding');
    assert.deepEqual(await scene.admin.get(REPORTS, KEY), theirs);
    await scene.quiet();
    assert.match(scene.writes.join(), /^create portcullis-1-[-0-9a-f]{36}$/);
  });

  it('of a namespace that ends are no failure', async () => {
    await using scene = await ReportScene.open();
    await scene.admin.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await scene.start();
    const object = { ...podFinding('web-1').object, namespace: 'shop' };
    scene.findings.set([podFinding('web-1', { object })]);
    await until(async () => (await scene.results('shop')).length === 1);
    await scene.admin.delete(NAMESPACES, { name: 'shop' });
    scene.findings.changed('shop');
    await scene.quiet();
    assert.deepEqual(await scene.reports('shop'), []);
    assert.deepEqual(
      scene.lines.filter(({ level }) => Number(level) >= 40),
      [],
    );
  });

  it('are chunked, and one changed finding rewrites one of them', async () => {
    await using scene = await ReportScene.open();
    await scene.start();
    scene.findings.settled.add('policy-1');
    const all = Array.from({ length: 2 * MAX_REPORT_RESULTS + 1 }, (_, index) => podFinding(`web-${index}`));
    scene.findings.set(all);
    await scene.untilResults(({ length }) => length === all.length);
    await scene.quiet();
    assert.deepEqual(
      (await scene.reports()).map(({ metadata, results = [] }) => [metadata.name, results.length]),
      [
        ['portcullis-1', MAX_REPORT_RESULTS],
        ['portcullis-2', MAX_REPORT_RESULTS],
        ['portcullis-3', 1],
      ],
    );
    scene.writes = [];
    const changed = all.map((one, index) => (index === 300 ? { ...one, message: 'another' } : one));
    scene.findings.set(changed);
    await scene.untilResults((results) => results.some(({ message }) => message === 'another'));
    await scene.quiet();
    assert.deepEqual(scene.writes, ['update portcullis-2']);
    scene.writes = [];
    scene.findings.set(changed.slice(1));
    await scene.untilResults(({ length }) => length === all.length - 1);
    await scene.quiet();
    assert.deepEqual(scene.writes, ['update portcullis-1']);
  });

  it('are written once their kinds are served', async () => {
    await using scene = await ReportScene.open({ serves: false });
    await scene.start();
    scene.findings.set([podFinding('web-1')]);
    await until(() => scene.lines.filter(({ state }) => state === 'NotServed').length === 2);
    await scene.serve();
    await scene.untilResults(({ length }) => length === 1);
    assert.equal(scene.lines.filter(({ state }) => state === 'NotServed').length, 2, 'it is said once for each kind');
    assert.match(await scene.registry.metrics(), /portcullis_audit_reports_served\{kind="Report"\} 1/);
  });

  it('of one kind are written although the other one cannot be listed', async () => {
    await using scene = await ReportScene.open();
    scene.refusalOf = (verb, { kind }) =>
      verb === 'list' && kind === 'ClusterReport' ? new ApiError(403, 'Forbidden', 'no') : undefined;
    await scene.start();
    const node = { apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'u' };
    scene.findings.set([podFinding('web-1'), podFinding('a', { object: node })]);
    await scene.untilResults(({ length }) => length === 1);
    await until(() => scene.lines.some(({ state, kind }) => state === 'Forbidden' && kind === 'ClusterReport'));
    assert.match(await scene.registry.metrics(), /portcullis_audit_reports_served\{kind="ClusterReport"\} 0/);
  });

  it('are written after the API server refused some requests', async () => {
    await using scene = await ReportScene.open();
    let refusals = 0;
    scene.refusalOf = (verb) =>
      verb === 'create' && (refusals += 1) <= 3 ? new ApiError(429, 'TooManyRequests', 'later') : undefined;
    await scene.start();
    scene.findings.set([podFinding('web-1')]);
    await scene.untilResults(({ length }) => length === 1);
    assert.match(await scene.registry.metrics(), /writes_total\{kind="Report",verb="create",code="429"\} 3/);
  });
});
