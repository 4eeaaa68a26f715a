import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { readPolicyDefinition } from '../../engine/index.ts';
import { connectCapabilities, Loader, type LoadOutcome, type LoadRequest } from '../../evaluation/index.ts';
import { DEFAULT_SOURCES } from '../../modules/sources/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import type { LoadedRevision } from '../policies/registry-entry.ts';
import { ExistingParameters } from './existing-parameters.ts';
import { namespacesOfFingerprint } from './parameters-fingerprint.ts';
import { ParameterTrials, type TrialResult } from './parameter-trials.ts';

const LEVEL = 'example.com/level';
const ID = 'kw.cap.level';
const signal = new AbortController().signal;
/** Takes every level that the policy knows. */
const ANY = `{'enforce': params.annotations['${LEVEL}']}`;
/** Takes no namespace that is privileged. */
const STRICT = `params.annotations['${LEVEL}'] == 'privileged' ? {'enforce': 'none'} : ${ANY}`;

interface Spec {
  readonly settingsExpression?: string;
  readonly onRollout?: 'Fail' | 'Warn';
  readonly from?: object;
  readonly notFound?: string;
}

function definitionOf({ settingsExpression = ANY, onRollout = 'Fail', ...rest }: Spec): LoadRequest['definition'] {
  const from = { namespace: { annotations: [LEVEL] } };
  const parameters = { from, overridable: ['enforce'], settingsExpression, onRollout, ...rest };
  const { definition } = readPolicyDefinition(ID, { module: 'builtin:pod-security', settings: {}, parameters });
  assert.ok(definition !== undefined);
  return definition;
}

function revisionOf(spec: Spec, uid = 'one'): LoadedRevision {
  const revision = { name: `${ID}.1`, uid, number: 1 };
  return { definition: definitionOf(spec), digests: {}, revision, version: '1' } as unknown as LoadedRevision;
}

const folder = mkdtempSync(join(tmpdir(), 'portcullis-trials-'));
const loader = new Loader(
  {
    cacheDir: join(folder, 'modules'),
    baseDir: folder,
    sources: DEFAULT_SOURCES,
    fetchTimeoutMs: undefined,
    defaultTimeoutSeconds: 2,
    memoryLimitBytes: 64 * 1024 * 1024,
    recordFolder: folder,
    modules: () => [],
    connectCapabilities: () =>
      connectCapabilities(() => assert.fail('expected no module that needs host capabilities')),
  },
  () => undefined,
);
after(async () => {
  await loader.stop();
  rmSync(folder, { recursive: true });
});

async function load(request: LoadRequest): Promise<LoadOutcome> {
  const { promise, resolve } = Promise.withResolvers<LoadOutcome>();
  loader.load([request], (outcomes) => outcomes.forEach(resolve));
  return await promise;
}

/** The result for a new revision in a cluster with namespaces of these levels. */
async function tried(
  levels: Readonly<Record<string, string>>,
  next: Spec,
  options: { readonly serving?: LoadedRevision; readonly uid?: string; readonly load?: typeof load } = {},
): Promise<TrialResult> {
  const items = Object.entries(levels).map(([name, level]): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, annotations: { [LEVEL]: level } },
  }));
  const cluster = { list: async () => ({ items, metadata: {} }) } as unknown as ConstructorParameters<
    typeof ExistingParameters
  >[0];
  const { serving } = options;
  const trials = new ParameterTrials({
    load: options.load ?? load,
    parameters: new ExistingParameters(cluster, cluster),
    serving: () => serving,
  });
  const request: LoadRequest = { id: ID, definition: definitionOf(next) };
  return await trials.try(request, {}, options.uid ?? serving?.revision?.uid, signal);
}

function failure(result: TrialResult): string {
  assert.ok(!result.ok);
  assert.equal(result.reason, 'InvalidParameters');
  return result.message;
}

describe('a new revision, tried with the parameters that exist', () => {
  const levels = { good: 'baseline', bad: 'nonsense', loose: 'privileged' };
  const serving = revisionOf({});

  it('is not blocked by a namespace that what serves refuses already', async () => {
    assert.deepEqual(await tried(levels, {}, { serving }), { ok: true });
  });

  it('fails for namespaces that are valid today, and names those that are not separately', async () => {
    const message = failure(await tried(levels, { settingsExpression: STRICT }, { serving }));
    assert.match(message, /^1 of 3 namespaces would be refused for their parameters: loose \(the parameters of /);
    assert.match(message, /; invalid before, and not counted: 1 namespace \(bad\)\. Correct these parameters /);
  });

  it('waits for other parameters of the namespaces that block it, whatever those of others are', async () => {
    const result = await tried(levels, { settingsExpression: STRICT }, { serving });
    assert.deepEqual(namespacesOfFingerprint('parameters' in result ? result.parameters : undefined), ['loose']);
  });

  it('names ten namespaces, and counts the others', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`t${index + 10}`, index < 15 ? 'nonsense' : 'privileged']),
    );
    const message = failure(await tried(many, { settingsExpression: STRICT }, { serving }));
    assert.match(message, /^15 of 30 namespaces .*: t25, .*, t34 and 5 more /);
    assert.match(message, /15 namespaces \(t10, /);
  });

  it('serves with a warning where the policy says so', async () => {
    const result = await tried(levels, { settingsExpression: STRICT, onRollout: 'Warn' }, { serving });
    assert.ok(result.ok);
    assert.match(result.warning ?? '', /^1 of 3 namespaces .*loose.*invalid before, and not counted: 1 namespace/);
    assert.deepEqual(await tried(levels, { onRollout: 'Warn' }, { serving }), { ok: true });
  });

  it('is compared with the parameters that what serves reads, which may be others', async () => {
    const other = revisionOf({ from: { namespace: { annotations: ['example.com/old'] } } });
    // What serves denies every namespace, because none has its annotation.
    assert.deepEqual(await tried(levels, {}, { serving: other }), { ok: true });
    const lenient = revisionOf({ from: { namespace: { annotations: ['example.com/old'] } }, notFound: 'Allow' });
    assert.match(failure(await tried(levels, {}, { serving: lenient })), /^1 of 3 namespaces .*: bad/);
  });

  it('serves as the first one, unless it would refuse every namespace', async () => {
    assert.deepEqual(await tried(levels, {}), { ok: true });
    assert.deepEqual(await tried({ bad: 'nonsense' }, {}), { ok: true });
    const result = await tried({ ...levels, loose: 'baseline' }, { settingsExpression: "{'enforce': 'none'}" });
    assert.match(failure(result), /^3 of 3 namespaces/);
  });

  describe('while it is not known what serves does', () => {
    const down = async (request: LoadRequest): Promise<LoadOutcome> =>
      request.trial?.countsMissing === true
        ? { ok: false, reason: 'FetchFailed', message: 'the module is not in the cache', transient: true }
        : await load(request);

    it('is tried again where the serving module cannot be run', async () => {
      const result = await tried(levels, {}, { serving, load: down });
      assert.match(
        failure(result),
        /^whether these are valid today is not known, as the revision that serves cannot be tried with them: the module is not in the cache: 1 namespace \(bad\)/,
      );
      assert.ok(!result.ok && result.isTransient);
    });

    it('is tried again where this replica serves another revision, or none', async () => {
      for (const options of [{ serving, uid: 'two' }, { uid: 'two' }]) {
        const result = await tried(levels, {}, options);
        assert.match(failure(result), /this replica does not have the revision that serves: 1 namespace \(bad\)/);
        assert.ok(!result.ok && result.isTransient);
      }
    });

    it('serves where it refuses nobody', async () => {
      assert.deepEqual(await tried({ good: 'baseline' }, {}, { serving, load: down }), { ok: true });
    });
  });
});
