// Kinds: discovery, custom resources, validation, unknown fields.
import assert from 'node:assert/strict';
import type { Cluster } from '../../src/cluster/index.ts';
import type { PortCase } from './cases.ts';
import { eventually, refused, summary, watched } from './expectations.ts';
import {
  crate,
  crateDefinition,
  cratesOf,
  CUSTOM_RESOURCES,
  deployment,
  DEPLOYMENTS,
  pod,
  PODS,
  type Specified,
} from './resource-types.ts';

/** The message beside errors that prevent CEL rules from running. */
const UNCHECKED =
  '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';

/** Installs the custom resource of a case, and waits until it is served. */
async function install(cluster: Cluster, group: string): Promise<void> {
  await cluster.create(CUSTOM_RESOURCES, crateDefinition(group));
  await eventually(async () => {
    const { status } = await cluster.get(CUSTOM_RESOURCES, { name: `crates.${group}` });
    const conditions = (status?.['conditions'] ?? []) as { type: string; status: string }[];
    assert.ok(conditions.some(({ type, status: value }) => type === 'Established' && value === 'True'));
    await cluster.list(cratesOf(group), { namespace: 'default' });
  });
}

async function unknownFields(cluster: Cluster, object: Specified): Promise<void> {
  const warnings: string[] = [];
  const options = { dryRun: true, onWarning: (text: string) => warnings.push(text) };
  await refused(
    cluster.create(PODS, object, { dryRun: true, fieldValidation: 'Strict' }),
    400,
    'BadRequest',
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee", unknown field "spec.bogus"',
  );
  const made = await cluster.create(PODS, object, { ...options, fieldValidation: 'Warn' });
  assert.equal(made.spec['bogus'], undefined);
  assert.deepEqual(warnings, ['unknown field "spec.containers[0].imagee"', 'unknown field "spec.bogus"']);
  await cluster.create(PODS, object, { ...options, fieldValidation: 'Ignore' });
  assert.equal(warnings.length, 2);
}

export const TYPE_CASES: readonly PortCase[] = [
  {
    name: 'discovery finds builtin kinds by apiVersion and kind',
    async run({ cluster }) {
      const pods = await cluster.discovery.find('v1', 'Pod');
      assert.deepEqual(
        [pods?.group, pods?.version, pods?.resource, pods?.namespaced, pods?.singular, pods?.shortNames],
        ['', 'v1', 'pods', true, 'pod', ['po']],
      );
      assert.deepEqual(pods?.verbs.toSorted(), [
        'create',
        'delete',
        'deletecollection',
        'get',
        'list',
        'patch',
        'update',
        'watch',
      ]);
      assert.ok(pods?.subresources.includes('status'));
      const found = await cluster.discovery.find('rbac.authorization.k8s.io/v1', 'ClusterRole');
      assert.deepEqual([found?.resource, found?.namespaced], ['clusterroles', false]);
      assert.equal(await cluster.discovery.find('v1', 'Nonsense'), undefined);
    },
  },
  {
    name: 'an installed kind is served at once, until it is removed',
    async run({ cluster, namespace, unique }) {
      const group = `${unique('g')}.example.com`;
      await install(cluster, group);
      const found = await eventually(async () => {
        const resource = await cluster.discovery.find(`${group}/v1`, 'Crate');
        assert.ok(resource);
        return resource;
      });
      assert.deepEqual(
        [found.resource, found.singular, found.shortNames, found.namespaced],
        ['crates', 'crate', ['cr8'], true],
      );
      assert.deepEqual(found.subresources.toSorted(), ['scale', 'status']);
      await cluster.create(cratesOf(group), crate(group, namespace, 'a'));
      await cluster.delete(CUSTOM_RESOURCES, { name: `crates.${group}` });
      await eventually(() => refused(cluster.list(cratesOf(group), { namespace }), 404, 'NotFound'));
    },
  },
  {
    name: 'an installed kind: defaults, pruning, generation, status and scale',
    async run({ cluster, namespace, unique }) {
      const group = `${unique('g')}.example.com`;
      const [type, key] = [cratesOf(group), { namespace, name: 'a' }];
      await install(cluster, group);
      const spec = { size: 'small', extra: 1, free: { anything: [1] }, labels: { a: 'b' } };
      const made = await cluster.create(type, crate(group, namespace, 'a', spec), { fieldValidation: 'Ignore' });
      assert.deepEqual(made.spec, { size: 'small', replicas: 1, free: { anything: [1] }, labels: { a: 'b' } });
      assert.equal(made.metadata.generation, 1);
      const reported = await cluster.patch(
        type,
        key,
        { type: 'merge', body: { status: { note: 'x', replicas: 1 } } },
        { subresource: 'status' },
      );
      assert.deepEqual([reported.status, reported.metadata.generation], [{ note: 'x', replicas: 1 }, 1]);
      const changed = await cluster.patch(type, key, { type: 'merge', body: { spec: { replicas: 2 } } });
      assert.equal(changed.metadata.generation, 2);
      const scale = await cluster.get<Specified>(type, key, { subresource: 'scale' });
      assert.deepEqual([scale.kind, scale.spec, scale.status], ['Scale', { replicas: 2 }, { replicas: 1 }]);
      await cluster.patch(type, key, { type: 'merge', body: { spec: { replicas: 3 } } }, { subresource: 'scale' });
      assert.equal((await cluster.get(type, key)).spec['replicas'], 3);
    },
  },
  {
    name: 'an installed kind: rejections by its schema and rules, with the messages of an API server',
    async run({ cluster, namespace, unique }) {
      const group = `${unique('g')}.example.com`;
      const type = cratesOf(group);
      await install(cluster, group);
      const create = (spec: Record<string, unknown>): Promise<unknown> =>
        cluster.create(type, crate(group, namespace, 'a', spec), { fieldValidation: 'Strict' });
      const prefix = `Crate.${group} "a" is invalid: `;
      await refused(create({}), 422, 'Invalid', `${prefix}[spec.size: Required value, ${UNCHECKED}]`);
      await refused(
        create({ size: 'huge' }),
        422,
        'Invalid',
        `${prefix}[spec.size: Unsupported value: "huge": supported values: "small", "large", ${UNCHECKED}]`,
      );
      await refused(
        create({ size: 'small', ports: [{ name: 'a', port: 70000 }] }),
        422,
        'Invalid',
        `${prefix}spec.ports[0].port: Invalid value: 70000: spec.ports[0].port in body should be less than or equal to 65535`,
      );
      await refused(
        create({ size: 'small', replicas: 'two' }),
        422,
        'Invalid',
        new RegExp(
          'spec\\.replicas: Invalid value: "string": spec\\.replicas in body must be of type integer: "string"',
        ),
      );
      await refused(
        create({ size: 'small', replicas: 4 }),
        422,
        'Invalid',
        /^Crate\.\S+ "a" is invalid: spec: Invalid value: .*: a small crate has at most 3$/,
      );
      await refused(
        create({ size: 'small', ports: [{ name: 'a' }, { name: 'a' }] }),
        422,
        'Invalid',
        `${prefix}spec.ports[1]: Duplicate value: {"name":"a"}`,
      );
      await refused(
        create({ size: 'small', bogus: 1 }),
        400,
        'BadRequest',
        `Crate in version "v1" cannot be handled as a Crate: strict decoding error: unknown field "spec.bogus"`,
      );
      const made = await cluster.create(type, crate(group, namespace, 'a'));
      await refused(
        cluster.update(type, { ...made, spec: { ...made.spec, size: 'large' } }),
        422,
        'Invalid',
        /^Crate\.\S+ "a" is invalid: spec: Invalid value: .*: size is immutable$/,
      );
    },
  },
  {
    name: 'an installed kind: watched, patched and applied like any other, except for strategic merge patches',
    async run({ cluster, namespace, unique }) {
      const group = `${unique('g')}.example.com`;
      const [type, key] = [cratesOf(group), { namespace, name: 'a' }];
      await install(cluster, group);
      const { metadata } = await cluster.list(type, { namespace });
      const body = crate(group, namespace, 'a', { size: 'large', ports: [{ name: 'x', port: 1 }] }) as never;
      await cluster.patch(type, key, { type: 'apply', body }, { fieldManager: 'one' });
      const other = crate(group, namespace, 'a', { size: 'large', ports: [{ name: 'y', port: 2 }] }) as never;
      const merged = await cluster.patch(type, key, { type: 'apply', body: other }, { fieldManager: 'two' });
      assert.deepEqual(merged.spec['ports'], [
        { name: 'x', port: 1 },
        { name: 'y', port: 2 },
      ]);
      await refused(
        cluster.patch(type, key, { type: 'strategic', body: { spec: { size: 'large' } } }),
        415,
        'UnsupportedMediaType',
        /the body of the request was in an unknown format - accepted media types include: application\/json-patch\+json, application\/merge-patch\+json, application\/apply-patch\+yaml/,
      );
      await cluster.delete(type, key);
      const events = await watched(
        cluster,
        type,
        { namespace, resourceVersion: metadata.resourceVersion },
        (seen) => seen.length === 3,
      );
      assert.deepEqual(summary(events), ['ADDED a', 'MODIFIED a', 'DELETED a']);
    },
  },
  {
    name: 'an invalid definition is rejected',
    async run({ cluster, unique }) {
      const group = `${unique('g')}.example.com`;
      const definition = crateDefinition(group);
      await refused(
        cluster.create(CUSTOM_RESOURCES, { ...definition, metadata: { name: `boxes.${group}` } }),
        422,
        'Invalid',
        /metadata\.name: Invalid value: "boxes\.\S+": must be spec\.names\.plural\+"\."\+spec\.group/,
      );
      const { spec } = structuredClone(definition) as unknown as {
        spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: object } } } }] };
      };
      spec.versions[0].schema.openAPIV3Schema.properties.spec = { properties: { a: { type: 'string' } } };
      await refused(
        cluster.create(CUSTOM_RESOURCES, { ...definition, spec }),
        422,
        'Invalid',
        /openAPIV3Schema\.properties\[spec\]\.type: Required value: must not be empty for specified object fields/,
      );
    },
  },
  {
    name: 'unknown fields are rejected, warned about, or dropped',
    async run({ cluster, namespace }) {
      const object = pod(namespace, 'a');
      const containers = (object.spec['containers'] as object[]).map((container) => ({ ...container, imagee: 'x' }));
      await unknownFields(cluster, { ...object, spec: { ...object.spec, bogus: true, containers } });
    },
  },
  {
    name: 'builtin kinds: required and immutable fields',
    async run({ cluster, namespace }) {
      await refused(
        cluster.create(PODS, { ...pod(namespace, 'a'), spec: { containers: [] } }),
        422,
        'Invalid',
        'Pod "a" is invalid: spec.containers: Required value',
      );
      const object = deployment(namespace, 'web');
      await refused(
        cluster.create(DEPLOYMENTS, { ...object, spec: { ...object.spec, selector: { matchLabels: { other: 'x' } } } }),
        422,
        'Invalid',
        /^Deployment\.apps "web" is invalid: spec\.template\.metadata\.labels: Invalid value: .*: `selector` does not match template `labels`$/,
      );
      const made = await cluster.create(PODS, pod(namespace, 'a'));
      await refused(
        cluster.update(PODS, { ...made, spec: { ...made.spec, restartPolicy: 'Never' } }),
        422,
        'Invalid',
        /^Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`/,
      );
    },
  },
  {
    name: 'builtin kinds get defaults',
    async run({ cluster, namespace }) {
      const made = await cluster.create(PODS, pod(namespace, 'a'));
      assert.deepEqual(
        [made.spec['restartPolicy'], made.spec['dnsPolicy'], made.spec['terminationGracePeriodSeconds']],
        ['Always', 'ClusterFirst', 30],
      );
      const [container] = made.spec['containers'] as Record<string, unknown>[];
      assert.deepEqual(
        [container?.['imagePullPolicy'], container?.['terminationMessagePolicy'], container?.['resources']],
        ['IfNotPresent', 'File', {}],
      );
      assert.equal(made.status?.['phase'], 'Pending');
      assert.equal(made.status?.['qosClass'], 'BestEffort');
    },
  },
  {
    name: 'a body of another kind or namespace is rejected',
    async run({ cluster, namespace }) {
      await refused(
        cluster.create(PODS, { ...pod(namespace, 'a'), kind: 'Service' }),
        400,
        'BadRequest',
        /Service in version "v1" cannot be handled as a Pod: converting \(v1\.Service\) to \(core\.Pod\): unknown conversion|Service in version "v1" cannot be handled as a Pod/,
      );
    },
  },
];
