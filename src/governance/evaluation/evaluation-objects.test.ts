// What the main thread gives a thread that evaluates.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { knownKind, kubernetesKind, type KubernetesObject, Selector } from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { KnownCertificates } from '../certificates/secret-certificates.ts';
import { AskedObjects } from './asked-objects.ts';
import { EvaluationObjects } from './evaluation-objects.ts';

const CONFIG_MAPS = knownKind('v1', 'ConfigMap');
const KIND = { of: 'kind', apiVersion: 'v1', kind: 'ConfigMap' } as const;

const configMap = (name: string, value: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value },
});

/** Objects that an evaluation reads, and is sure to ask for. */
function objectsOf(all: readonly KubernetesObject[]): EvaluationObjects {
  const store = new ObjectStore();
  store.replace(all);
  return new EvaluationObjects({
    key: { namespace: 'local-cluster', name: 'policy' },
    mappings: { find: async (apiVersion, kind) => kubernetesKind(apiVersion, kind) },
    reader: { open: async () => store, use: () => undefined, add: () => undefined },
    namespaces: () => [],
    certificates: new KnownCertificates(),
    foreseen: all.map(({ apiVersion, kind, metadata: { namespace = '', name = '' } }) => ({
      apiVersion,
      kind,
      namespace,
      name,
    })),
  });
}

const named = (count: number, value: string): readonly KubernetesObject[] =>
  Array.from({ length: count }, (_, index) => configMap(`object-${index}`, value));

describe('the objects of an evaluation', () => {
  it('go with the job as far as they fit a page, which one turn of the main thread makes', async () => {
    const objects = objectsOf(named(64, 'x'.repeat(200_000)));
    const names = await objects.evaluate(
      async () => objects.foreseen.flatMap(([question]) => /"name":"([^"]+)"/.exec(question)?.[1] ?? []),
      AbortSignal.timeout(10_000),
    );
    assert.deepEqual(names, ['object-0', 'object-1', 'object-2']);
  });

  it('are sorted in the thread, whatever their order in the cluster', async () => {
    const objects = objectsOf(['c', 'a', 'd', 'b'].map((name) => configMap(name, 'x')));
    const [listed, names, given] = await objects.evaluate(async () => {
      const question = { of: 'names', type: CONFIG_MAPS, namespace: 'default', selector: '', from: 0 } as const;
      const asked = new AskedObjects([], (question) => objects.answer(question));
      return [
        asked.list(CONFIG_MAPS, 'default', Selector.EVERYTHING).map(({ metadata }) => metadata.name),
        asked.names(CONFIG_MAPS, 'default', Selector.EVERYTHING),
        objects.answer(question),
      ];
    }, AbortSignal.timeout(10_000));
    assert.deepEqual([listed, names], [names, ['a', 'b', 'c', 'd']]);
    assert.deepEqual(given, { state: 'found', text: '["c","a","d","b"]' });
  });

  it('are certificates of few Secrets at once, if these are long: reading one takes time', async () => {
    const value = 'x'.repeat(200_000);
    const secrets = named(10, value).map((object) => ({ ...object, kind: 'Secret', data: { 'tls.crt': value } }));
    const objects = objectsOf(secrets);
    const type = knownKind('v1', 'Secret');
    const page = await objects.evaluate(
      async () => objects.answer({ of: 'certificates', type, namespace: 'default', selector: '', from: 0 }),
      AbortSignal.timeout(10_000),
    );
    assert.ok(page.state === 'found');
    assert.equal(page.next, 3);
  });

  it('cannot be read beyond their limit, but their kinds are known, so that the policy can say so', async () => {
    const objects = objectsOf(named(65, 'x'.repeat(1_000_000)));
    const answers = await objects.evaluate(async () => {
      const states = named(65, '').map(
        ({ metadata: { name = '' } }) =>
          objects.answer({ of: 'object', type: CONFIG_MAPS, namespace: 'default', name }).state,
      );
      return { states, kind: objects.answer(KIND).state };
    }, AbortSignal.timeout(10_000));
    assert.deepEqual([answers.states[0], answers.states.at(-1), answers.kind], ['found', 'unreadable', 'found']);
  });
});
