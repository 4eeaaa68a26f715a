// The kinds of Kubernetes that the embedded cluster has, compared with those of a real API server: names, defaults, what
// `kubectl get` shows, and what is refused in which words.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import { KUBERNETES_KINDS, kubernetesKind } from '../../src/resources/index.ts';
import type { MutableObject, ResourceDefinition } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, type KubernetesObject, startCluster } from '../cluster/cluster.ts';

const NAMESPACE = 'default';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

function documents(name: string): readonly KubernetesObject[] {
  return loadAll(readFileSync(new URL(`builtin-kinds/${name}.yaml`, import.meta.url), 'utf8')) as KubernetesObject[];
}

function definitionOf({ apiVersion, kind }: KubernetesObject): ResourceDefinition {
  const definition = kubernetesKind(apiVersion, kind);
  assert.ok(definition !== undefined, `${apiVersion} ${kind} is served`);
  return definition;
}

function pathOf({ group, version, resource, namespaced }: ResourceDefinition, name = ''): string {
  const groupVersion = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const folder = namespaced ? `${groupVersion}/namespaces/${NAMESPACE}` : groupVersion;
  return `${folder}/${resource}${name === '' ? '' : `/${name}`}`;
}

const titleOf = ({ kind, metadata }: KubernetesObject): string => `${kind} ${metadata.name}`;

/** What other parts of the cluster add to new objects: here the store, there controllers and admission. */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  Node: ['spec.taints'],
  PersistentVolume: ['metadata.finalizers'],
  PersistentVolumeClaim: ['metadata.finalizers'],
  Service: ['spec.clusterIP', 'spec.clusterIPs', 'spec.ipFamilies', 'spec.ipFamilyPolicy'],
};

function withoutAdded(object: KubernetesObject): unknown {
  const copy = structuredClone(object) as MutableObject;
  for (const field of ['creationTimestamp', 'generation', 'managedFields', 'resourceVersion', 'uid']) {
    delete copy.metadata[field];
  }
  for (const path of ADDED[object.kind] ?? []) {
    const [parent = '', field = ''] = path.split('.');
    delete (copy[parent] as Record<string, unknown>)[field];
  }
  return copy;
}

describe('kinds of Kubernetes beside a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  let cluster: Cluster;

  before(async () => {
    cluster = await startCluster();
  });

  after(() => cluster?.stop());

  it('have the names, verbs and subresources that it lists', async () => {
    for (const definition of KUBERNETES_KINDS) {
      const path = definition.group === '' ? '/api' : `/apis/${definition.group}`;
      const { resources } = await cluster.expect<{ resources: readonly Record<string, unknown>[] }>(
        'GET',
        `${path}/${definition.version}`,
      );
      const { resource, singular, kind, namespaced, shortNames, categories, hasStatus, scale } = definition;
      const real = resources.find(({ name }) => name === resource);
      const has = (subresource: string): boolean => resources.some(({ name }) => name === `${resource}/${subresource}`);
      assert.deepEqual(
        { resource, singular, kind, namespaced, shortNames, categories, hasStatus, scale: scale !== undefined },
        {
          resource,
          singular: real?.['singularName'],
          kind: real?.['kind'],
          namespaced: real?.['namespaced'],
          shortNames: real?.['shortNames'] ?? [],
          categories: real?.['categories'] ?? [],
          hasStatus: has('status'),
          scale: has('scale'),
        },
      );
      if (definition.verbs !== undefined) {
        assert.deepEqual(definition.verbs, real?.['verbs']);
      }
    }
  });

  for (const object of documents('objects')) {
    it(`fill in ${titleOf(object)} as it does`, async () => {
      const definition = definitionOf(object);
      const real = await cluster.expect('POST', `${pathOf(definition)}?dryRun=All`, object);
      const { uid, creationTimestamp, generation } = real.metadata;
      const namespace = definition.namespaced ? { namespace: NAMESPACE } : {};
      const ours = structuredClone(object) as MutableObject;
      ours.metadata = { ...ours.metadata, ...namespace, uid, creationTimestamp };
      definition.applyDefaults?.(ours);
      assert.deepEqual(withoutAdded(ours as KubernetesObject), withoutAdded(real));
      assert.equal(definition.countsGenerations, generation !== undefined, 'counts generations');
      const again = structuredClone(ours);
      definition.applyDefaults?.(again);
      assert.deepEqual(again, ours, 'filling in again changes nothing');
    });
  }

  for (const object of [...documents('objects'), ...documents('statuses')]) {
    it(`show ${titleOf(object)} as it does`, async () => {
      const definition = definitionOf(object);
      const path = pathOf(definition, object.metadata.name);
      await cluster.expect('POST', pathOf(definition), object);
      if (object['status'] !== undefined) {
        await cluster.expect('PATCH', `${path}/status`, { status: object['status'] });
      }
      if ((object.metadata['finalizers'] as readonly string[] | undefined)?.length) {
        await cluster.expect('DELETE', path);
      }
      const stored = await cluster.expect('GET', path);
      const start = Date.now();
      const table = await cluster.request<{ columnDefinitions: unknown; rows: readonly { cells: unknown }[] }>(
        'GET',
        path,
        undefined,
        { accept: TABLE },
      );
      assert.deepEqual(definition.printer.columns, table.body.columnDefinitions);
      const cells = (now: number): string => JSON.stringify(definition.printer.cells(stored, now));
      const real = JSON.stringify(table.body.rows[0]?.cells);
      // Ages may have changed while it answered.
      assert.equal(cells(start) === real ? real : cells(Date.now()), real);
    });
  }
});
