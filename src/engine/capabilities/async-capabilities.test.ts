import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostPort } from './host-port.ts';
import type { JsonObject } from '../values/json-text.ts';
import { AsyncCapabilities } from './async-capabilities.ts';
import type { KubernetesReader } from './kubernetes.ts';
import { masked, NO_CLUSTER_MESSAGE } from './kubernetes.ts';
import type { ImageReader } from './oci.ts';
import { LocalCapabilities } from './local-capabilities.ts';

const POD: JsonObject = {
  kind: 'Pod',
  metadata: { name: 'a', labels: { x: 'y' } },
  spec: { containers: [{ name: 'c', image: 'i' }, { name: 'd' }] },
};

/** A cluster with one pod, which records requests. */
function cluster(): { reader: KubernetesReader; requests: unknown[] } {
  const requests: unknown[] = [];
  const reader: KubernetesReader = {
    get: async (request) => (requests.push(request), request.name === 'a' ? POD : undefined),
    list: async (request) => (requests.push(request), { kind: 'PodList', items: [POD] }),
    canI: async (review, disableCache) => (requests.push([review, disableCache]), { allowed: true }),
    pluralName: async (_apiVersion, kind) => `${kind.toLowerCase()}s`,
  };
  return { reader, requests };
}

test('reads of Kubernetes call the reader, and field masks reduce its answer', async () => {
  const { reader, requests } = cluster();
  const capabilities = new AsyncCapabilities({ kubernetes: reader });
  const call = async (operation: string, payload: unknown): Promise<unknown> =>
    JSON.parse(await capabilities.answer(`kubernetes/${operation}`, JSON.stringify(payload)));
  const kind = { api_version: 'v1', kind: 'Pod' };
  assert.deepEqual(await call('get_resource', { ...kind, name: 'a', namespace: 'n', disable_cache: true }), POD);
  assert.deepEqual(
    await call('get_resource', { ...kind, name: 'a', field_masks: ['metadata.name', 'spec.containers.image'] }),
    {
      metadata: { name: 'a' },
      spec: { containers: [{ image: 'i' }, {}] },
    },
  );
  const selectors = { label_selector: 'x=y', field_selector: null };
  assert.deepEqual(await call('list_resources_all', { ...kind, ...selectors, field_masks: ['kind'] }), {
    kind: 'PodList',
    items: [{ kind: 'Pod' }],
  });
  await call('list_resources_by_namespace', { ...kind, namespace: 'n' });
  assert.deepEqual(await call('can_i', { subject_access_review: { user: 'u' }, disable_cache: false }), {
    allowed: true,
  });
  assert.equal(await call('get_resource_plural_name', kind), 'pods');
  assert.deepEqual(requests, [
    { apiVersion: 'v1', kind: 'Pod', name: 'a', namespace: 'n', disableCache: true },
    { apiVersion: 'v1', kind: 'Pod', name: 'a', disableCache: false },
    { apiVersion: 'v1', kind: 'Pod', labelSelector: 'x=y' },
    { apiVersion: 'v1', kind: 'Pod', namespace: 'n' },
    [{ user: 'u' }, false],
  ]);
  await assert.rejects(
    call('get_resource', { ...kind, name: 'x' }),
    /^Error: Cannot find v1\/Pod named 'x' inside of namespace 'None'$/,
  );
  for (const payload of [5, {}, { ...kind, name: 5 }, { ...kind, name: 'a', field_masks: 'x' }]) {
    await assert.rejects(call('get_resource', payload), /expected/);
  }
  await assert.rejects(call('can_i', {}), /subject_access_review: expected an object/);
  await assert.rejects(call('delete', kind), /unknown operation: kubernetes\/delete/);
});

test('field masks keep the named fields with their content; without masks everything is kept', () => {
  const value = { a: { b: 1, c: [{ d: 1, e: 2 }, 'x'] }, f: 3 };
  assert.deepEqual(masked(value, null), value);
  assert.deepEqual(masked(value, []), value);
  assert.deepEqual(masked(value, ['a']), { a: value.a });
  assert.deepEqual(masked(value, ['a.c.e', 'f', 'g.h']), { a: { c: [{ e: 2 }, 'x'] }, f: 3 });
});

test('reads of registries call the reader, for the caller and its time', async () => {
  const calls: unknown[] = [];
  const images: ImageReader = { answer: async (...call) => (calls.push(call), '{}') };
  const capabilities = new AsyncCapabilities({ images });
  await capabilities.answer('oci/v1/manifest_digest', '"nginx"', { leftMs: 7, tenant: 'team' });
  await capabilities.answer('oci/v1/oci_manifest', '"nginx"', { leftMs: 8 });
  await capabilities.answer('oci/v1/oci_manifest_config', '"nginx"', { leftMs: 9 });
  assert.deepEqual(calls, [
    [
      { kind: 'digest', image: 'nginx' },
      { timeoutMs: 7, tenant: 'team' },
    ],
    [{ kind: 'manifest', image: 'nginx' }, { timeoutMs: 8 }],
    [{ kind: 'configuration', image: 'nginx' }, { timeoutMs: 9 }],
  ]);
  for (const payload of ['5', '""', '{"image":"nginx"}', 'null']) {
    await assert.rejects(capabilities.answer('oci/v1/manifest_digest', payload), /expected the name of an image/);
  }
  await assert.rejects(capabilities.answer('oci/v3/x', '"nginx"'), /unknown operation: oci\/v3\/x/);
  assert.equal(calls.length, 3);
});

test('without a cluster every read fails', async () => {
  await assert.rejects(new AsyncCapabilities().answer('kubernetes/can_i', '{}'), { message: NO_CLUSTER_MESSAGE });
});

test('looks up hosts', async () => {
  const capabilities = new AsyncCapabilities();
  const { ips } = JSON.parse(await capabilities.answer('net/v1/dns_lookup_host', '"localhost"')) as { ips: string[] };
  assert.ok(ips.includes('127.0.0.1') || ips.includes('::1'));
  await assert.rejects(capabilities.answer('net/v1/dns_lookup_host', '""'), /expected the name of a host/);
  await assert.rejects(capabilities.answer('net/v1/dns_lookup_host', '"a b"'), /cannot look up a b/);
  await assert.rejects(capabilities.answer('other/v1/x', '{}'), /unknown host capability: other\/v1\/x/);
});

test('certificates are checked in the thread itself, other calls are forwarded with their caller', () => {
  const port = new LocalCapabilities({
    request: (capability, _payload, caller) => JSON.stringify([capability, caller?.tenant]),
  });
  assert.throws(() => port.request('crypto/v1/is_certificate_trusted', '{}'), {
    code: 'capability-failed',
    message: /cannot verify the certificate/,
  });
  const answer = port.request('oci/v1/oci_manifest', '"x"', { leftMs: 1, tenant: 'team' });
  assert.equal(answer, '["oci/v1/oci_manifest","team"]');
});

test('with recording, every call is forwarded and no answer is cached', () => {
  const calls: string[] = [];
  const remote: HostPort = {
    request: (capability) => `"${calls.push(capability)}"`,
    revisionOf: () => '1',
  };
  const port = new LocalCapabilities(remote, true);
  const read = '{"api_version":"v1","kind":"Pod","name":"a"}';
  assert.equal(port.request('kubernetes/get_resource', read), '"1"');
  assert.equal(port.request('kubernetes/get_resource', read), '"2"');
  assert.equal(port.request('crypto/v1/is_certificate_trusted', '{}'), '"3"');
});

test('certificates are checked in any thread', async () => {
  await assert.rejects(new AsyncCapabilities().answer('crypto/v1/is_certificate_trusted', '{}'), {
    message: /cannot verify the certificate/,
  });
});
