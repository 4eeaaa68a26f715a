// Compares the builtin kinds of the embedded cluster with those of a real API server: names, defaults, tables of `kubectl get`,
// and messages of validation.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { load, loadAll } from 'js-yaml';
import { SERVED_KINDS } from '../../src/apiserver/index.ts';
import { servedKind } from '../../src/apiserver/testing/served-kind.ts';
import { decodeError } from '../../src/resources/decoding/index.ts';
import type { ResourceDefinition } from '../../src/apiserver/index.ts';
import { kubernetesOpenApi } from '../../src/resources/index.ts';
import type { MutableObject } from '../../src/resources/index.ts';
import { metadataErrors } from '../../src/resources/validation/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { type Cluster, type KubernetesObject, startCluster } from '../cluster/cluster.ts';

const NAMESPACE = 'default';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

function documents(name: string): readonly KubernetesObject[] {
  return loadAll(readFileSync(new URL(`builtin-kinds/${name}.yaml`, import.meta.url), 'utf8')) as KubernetesObject[];
}

/** What an API server says of the objects in warned.yaml. */
const WARNINGS = JSON.parse(readFileSync(new URL('builtin-kinds/warnings.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, readonly string[]>
>;

/** A change that makes an object of objects.yaml invalid: fields by path; null removes a field. */
interface RejectedCase {
  readonly of: string;
  readonly set?: Readonly<Record<string, unknown>>;
  /** A change of the stored object, for updates. */
  readonly update?: Readonly<Record<string, unknown>>;
}

function refusedCases(name: string): readonly RejectedCase[] {
  const file = new URL(`builtin-kinds/${name}.yaml`, import.meta.url);
  return load(readFileSync(file, 'utf8')) as RejectedCase[];
}

function changed(object: KubernetesObject, fields: Readonly<Record<string, unknown>> = {}): KubernetesObject {
  const copy = structuredClone(object);
  for (const [path, value] of Object.entries(fields)) {
    const names = path.match(/[^.[\]]+/g) ?? [];
    const last = names.pop() ?? '';
    let target = copy as Record<string, unknown>;
    for (const name of names) {
      target = (target[name] ??= {}) as Record<string, unknown>;
    }
    if (value === null) {
      delete target[last];
    } else {
      target[last] = value;
    }
  }
  return copy;
}

const UID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** A cause as text. Only its first line, because others are a diff of Go structs, which the embedded cluster does not print. */
function causeText({ field, message }: { readonly field: string; readonly message: string }): string {
  return `${field}: ${message.split('\n')[0]?.replace(UID, 'uid')}`;
}

/** Cases with another message here: the API server prints a value as a Go struct, or repeats the message. */
const DIFFERENT_MESSAGES = new Set([
  'Job once {"spec.template.spec.containers[0].image":"b:2"}',
  'Job once {"spec.selector":{"matchLabels":{"a":"b"}}}',
]);

/** The message of an API server that runs without --allow-privileged. */
const PRIVILEGED = 'spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy';

function definitionOf({ apiVersion, kind }: KubernetesObject): ResourceDefinition {
  const definition = servedKind(apiVersion, kind);
  assert.ok(definition !== undefined, `${apiVersion} ${kind} is served`);
  return definition;
}

function pathOf({ group, version, resource, namespaced }: ResourceDefinition, name = ''): string {
  const groupVersion = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const folder = namespaced ? `${groupVersion}/namespaces/${NAMESPACE}` : groupVersion;
  return `${folder}/${resource}${name === '' ? '' : `/${name}`}`;
}

const titleOf = ({ kind, metadata }: KubernetesObject): string => `${kind} ${metadata.name}`;

/** Fields that neither defaults nor clients set: here the store adds them, in a real cluster controllers and admission plugins. */
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
    for (const definition of SERVED_KINDS) {
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

  it('have the schemas that it publishes', async () => {
    const groupVersions = new Set(
      SERVED_KINDS.map(({ group, version }) => (group === '' ? `api/${version}` : `apis/${group}/${version}`)),
    );
    const missing = new Set(Object.keys(kubernetesOpenApi()));
    for (const groupVersion of [...groupVersions, 'apis/autoscaling/v1']) {
      const { components } = await cluster.expect<{ components: { schemas: Readonly<Record<string, unknown>> } }>(
        'GET',
        `/openapi/v3/${groupVersion}`,
      );
      for (const [name, schema] of Object.entries(components.schemas)) {
        if (Object.hasOwn(kubernetesOpenApi(), name)) {
          assert.deepEqual(kubernetesOpenApi()[name], schema, `${name}: run tools/kubernetes-openapi.ts`);
          missing.delete(name);
        }
      }
    }
    assert.deepEqual([...missing], []);
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

  for (const object of [...documents('warned'), ...documents('objects')]) {
    it(`warn of ${titleOf(object)} as it does`, async () => {
      const definition = definitionOf(object);
      const manifest = JSON.stringify(object);
      const { code, stderr } = await cluster.kubectl(['create', '--dry-run=server', '-n', NAMESPACE, '-f', '-'], {
        stdin: manifest,
      });
      assert.equal(code, 0, stderr);
      const real = stderr.split('\n').flatMap((line) => /^Warning: (.*)$/.exec(line)?.[1] ?? []);
      const completed = structuredClone(object) as MutableObject;
      definition.applyDefaults?.(completed);
      const { deprecation, warnings } = definition;
      const ours = warnings?.(completed, undefined) ?? [];
      assert.deepEqual([...(deprecation === undefined ? [] : [deprecation]), ...ours], real);
      // The unit tests expect these texts.
      assert.deepEqual(WARNINGS[titleOf(object)] ?? real, real);
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
      // Ages may have changed during the request.
      assert.equal(cells(start) === real ? real : cells(Date.now()), real);
    });
  }

  const objects = documents('objects');
  const original = (name: string): KubernetesObject => {
    const found = objects.find((object) => titleOf(object) === name);
    assert.ok(found !== undefined, `objects.yaml has ${name}`);
    return found;
  };

  /** The object that is stored under the name of another, which is made when there is none. */
  async function storedOf(object: KubernetesObject): Promise<KubernetesObject> {
    const definition = definitionOf(object);
    const path = pathOf(definition, object.metadata.name);
    const found = await cluster.request('GET', path);
    return found.status === 200 ? found.body : cluster.expect('POST', pathOf(definition), object);
  }

  for (const { of, set, update } of refusedCases('refused')) {
    const change = JSON.stringify(set ?? update);
    it(`answer ${of} with ${update === undefined ? '' : 'an update of '}${change} as it does`, async () => {
      const definition = definitionOf(original(of));
      const old = update === undefined ? undefined : await storedOf(original(of));
      const object = changed(old ?? original(of), set ?? update);
      const path = `${pathOf(definition, old?.metadata.name)}?dryRun=All`;
      const real = await cluster.request<{
        status: unknown;
        details?: { causes?: readonly { field: string; message: string }[] };
      }>(old === undefined ? 'POST' : 'PUT', path, object);
      const ours = structuredClone(object) as MutableObject;
      if (old === undefined) {
        const namespace = definition.namespaced ? { namespace: NAMESPACE } : {};
        ours.metadata = { uid: '00000000-0000-0000-0000-000000000000', ...ours.metadata, ...namespace };
      }
      definition.applyDefaults?.(ours);
      const errors = [...metadataErrors(ours, definition), ...(definition.validate?.(ours, old) ?? [])];
      const causes = (real.body.details?.causes ?? []).map(causeText).filter((cause) => cause !== PRIVILEGED);
      if (DIFFERENT_MESSAGES.has(`${of} ${change}`)) {
        assert.equal(errors.length > 0, causes.length > 0);
      } else {
        assert.deepEqual(errors.map(causeText), causes);
      }
    });
  }

  for (const { of, set } of refusedCases('undecodable')) {
    it(`cannot read ${of} with ${JSON.stringify(set)}, as it cannot`, async () => {
      const definition = definitionOf(original(of));
      const object = changed(original(of), set);
      const { status, body } = await cluster.request<{ message: string }>(
        'POST',
        `${pathOf(definition)}?dryRun=All`,
        object,
      );
      assert.equal(status, 400);
      assert.equal(decodeError(definition, object), body.message);
    });
  }
});
