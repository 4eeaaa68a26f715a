import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Discovery } from '../../cluster/index.ts';
import { type CustomResourceDefinition, KindMappings, withoutSchemas } from './kind-mappings.ts';
import { MissingKinds } from './missing-kinds.ts';

const SIGNAL = new AbortController().signal;
const PODS = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };

function definition({ isEstablished = true, served = true, scope = 'Namespaced' } = {}): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gates.lab.example.com', labels: { team: 'a' } },
    spec: {
      group: 'lab.example.com',
      scope,
      names: { kind: 'Gate', plural: 'gates' },
      versions: [{ name: 'v1', served }],
    },
    status: {
      conditions: [
        {
          type: 'Established',
          status: isEstablished ? 'True' : 'False',
          reason: '',
          message: '',
          lastTransitionTime: '',
        },
      ],
    },
  };
}

/** Counts the questions to the cluster. */
class Asked implements Discovery {
  count = 0;

  resources(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  find(apiVersion: string, kind: string): ReturnType<Discovery['find']> {
    this.count += 1;
    const pods = { ...PODS, singular: 'pod', shortNames: [], categories: [], verbs: [], subresources: [] };
    return Promise.resolve(apiVersion === 'v1' && kind === 'Pod' ? pods : undefined);
  }
}

const mappings = (...definitions: readonly CustomResourceDefinition[]) =>
  new KindMappings(new Asked(), { list: () => definitions });

describe('the resource of a kind', () => {
  it('of a definition is known without a request', async () => {
    const discovery = new Asked();
    const known = new KindMappings(discovery, { list: () => [definition()] });
    const expected = { group: 'lab.example.com', version: 'v1', resource: 'gates', kind: 'Gate', namespaced: true };
    assert.deepEqual(await known.find('lab.example.com/v1', 'Gate', SIGNAL), expected);
    assert.equal(await known.find('lab.example.com/v1', 'Other', SIGNAL), undefined);
    assert.equal(discovery.count, 0);
  });

  it('of the cluster itself is asked for', async () => {
    assert.equal((await mappings(definition()).find('v1', 'Pod', SIGNAL))?.resource, 'pods');
    assert.equal(await mappings().find('lab.example.com/v1', 'Gate', SIGNAL), undefined);
  });

  for (const [what, options] of [
    ['is not established', { isEstablished: false }],
    ['does not serve the version', { served: false }],
  ] as const) {
    it(`of a definition that ${what} is unknown`, async () => {
      assert.equal(await mappings(definition(options)).find('lab.example.com/v1', 'Gate', SIGNAL), undefined);
    });
  }

  it('may be cluster-scoped', async () => {
    assert.equal(
      (await mappings(definition({ scope: 'Cluster' })).find('lab.example.com/v1', 'Gate', SIGNAL))?.namespaced,
      false,
    );
  });
});

describe('a definition in the cache', () => {
  it('has no schemas, but its labels, and whether it is being deleted', () => {
    const full = {
      ...definition(),
      metadata: { ...definition().metadata, deletionTimestamp: '2026-01-01T00:00:00Z', annotations: { big: 'x' } },
    };
    const reduced = withoutSchemas({ ...full, spec: { ...full.spec, conversion: {} } } as CustomResourceDefinition);
    const { annotations: _annotations, ...metadata } = full.metadata;
    assert.deepEqual(reduced, { ...definition(), metadata });
    assert.deepEqual(mappings(reduced).labelsOf('lab.example.com/v1', 'Gate'), { team: 'a' });
    assert.equal(mappings(reduced).labelsOf('v1', 'Pod'), undefined);
  });
});

describe('kinds that are missing', () => {
  it('enqueue their keys when a definition of their group changes', () => {
    const listeners: ((change: {
      before: CustomResourceDefinition | undefined;
      after: CustomResourceDefinition | undefined;
    }) => void)[] = [];
    const enqueued: string[] = [];
    const missing = new MissingKinds();
    missing.follow(
      {
        subscribe: (listener) => {
          listeners.push(listener as (typeof listeners)[number]);
          return () => undefined;
        },
      },
      ({ name }) => enqueued.push(name),
    );
    const appear = (): void => listeners.forEach((listener) => listener({ before: undefined, after: definition() }));
    missing.set({ name: 'waits' }, ['lab.example.com', 'other.example.com']);
    missing.set({ name: 'elsewhere' }, ['other.example.com']);
    appear();
    assert.deepEqual(enqueued, ['waits']);
    missing.set({ name: 'waits' }, []);
    appear();
    assert.deepEqual(enqueued, ['waits']);
  });
});
