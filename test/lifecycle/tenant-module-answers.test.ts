// What tenants learn about servers that only the policy server reaches, from failed fetches of modules.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { DEFAULT_SOURCES } from '../../src/modules/sources/index.ts';
import { type KubernetesObject, POLICY_REVISIONS, POLICY_SERVER_REPLICAS } from '../../src/resources/index.ts';
import { EVENTS } from '../../src/runtime/index.ts';
import { TestServer } from '../../src/modules/testing/test-server.ts';
import { kind, type Policy, PolicyLab } from './policy-lab.ts';

const SECRET = 'TopSecretXyzzy';
/** Any part of the secret, in any notation that messages use: text, hexadecimal, the length of a body, a status. */
const TRACES = /secret|xyzzy|54 ?6f|topsec|31337|799/i;
/** Values of ours that may contain the digits of a trace. */
const UNIQUE = /[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:.]+Z|127\.0\.0\.1:\d+/g;
const PREAMBLE = Buffer.from([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]);

function leb(value: number): number[] {
  return [(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14];
}

function section(id: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([id, ...leb(content.length)]), content]);
}

function custom(name: string, content: string): Buffer {
  return section(0, Buffer.concat([Buffer.from([name.length]), Buffer.from(name + content)]));
}

function named(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

function metadata(value: unknown): Buffer {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return Buffer.concat([PREAMBLE, custom('io.kubewarden.metadata', text)]);
}

/** A module that imports a function of type () -> () by these names. */
function importing(module: string, name: string): Buffer {
  const type = section(1, Buffer.from([1, 0x60, 0, 0]));
  return Buffer.concat([
    PREAMBLE,
    type,
    section(2, Buffer.concat([Buffer.from([1]), named(module), named(name), Buffer.from([0, 0])])),
  ]);
}

/** A module that exports its function by these names. */
function exporting(...names: readonly string[]): Buffer {
  const exports = names.map((name) => Buffer.concat([named(name), Buffer.from([0, 0])]));
  return Buffer.concat([
    PREAMBLE,
    section(1, Buffer.from([1, 0x60, 0, 0])),
    section(3, Buffer.from([1, 0])),
    section(7, Buffer.concat([Buffer.from([names.length]), ...exports])),
    section(10, Buffer.from([1, 2, 0, 0x0b])),
  ]);
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;
const bytes =
  (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    response.writeHead(200, { 'x-token': SECRET, ...headers }).end(body);
const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    response.writeHead(code, SECRET, headers).end(SECRET);

/** By path. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  text: bytes(SECRET),
  'other-bytes': bytes(Buffer.concat([Buffer.from('To'), Buffer.from([0xff]), Buffer.from(SECRET)])),
  'content-type': bytes(SECRET, { 'content-type': `text/${SECRET}` }),
  json: bytes(JSON.stringify({ password: SECRET })),
  html: bytes(`<html>${SECRET}</html>`),
  bomb: bytes(gzipSync(Buffer.alloc(10_000_000, SECRET)), { 'content-encoding': 'gzip' }),
  'not-found': status(404),
  'unknown-status': status(799),
  unauthorized: status(401, { 'www-authenticate': `Basic realm="${SECRET}"` }),
  redirect: (_, response) => response.writeHead(302, { location: `http://${SECRET}.localhost/${SECRET}` }).end(),
  'redirect-scheme': (_, response) => response.writeHead(302, { location: `${SECRET}://x` }).end(),
  'redirect-nowhere': (_, response) => response.writeHead(302, { location: `http://[${SECRET}` }).end(),
  'redirect-inside': (_, response) => response.writeHead(302, { location: `/${SECRET}` }).end(),
  'rate-limited': status(429, { 'retry-after': '31337' }),
  'redirect-unknown': (_, response) => response.writeHead(302, { location: `http://${SECRET}.invalid/` }).end(),
  'redirect-loop': (request, response) => response.writeHead(302, { location: `${request.url}/${SECRET}` }).end(),
  truncated: (_, response) => {
    response.writeHead(200, { 'content-length': '31337' });
    response.write(SECRET);
    setImmediate(() => response.destroy());
  },
  'too-large': (_, response) => response.writeHead(200, { 'content-length': '3133700000000' }).end(SECRET),
  'no-http': (_, response) => response.socket?.end(`${SECRET}\r\n\r\n`),
  'after-preamble': bytes(Buffer.concat([PREAMBLE, Buffer.from(SECRET)])),
  'unknown-section': bytes(Buffer.concat([PREAMBLE, section(0x54, Buffer.from(SECRET))])),
  'section-of-types': bytes(Buffer.concat([PREAMBLE, section(1, Buffer.from(SECRET))])),
  'metadata-text': bytes(metadata(SECRET)),
  'metadata-json': bytes(metadata(`{"${SECRET}": ${SECRET}}`)),
  'metadata-mode': bytes(metadata({ executionMode: SECRET })),
  'metadata-version': bytes(metadata({ minimumKubewardenVersion: SECRET })),
  'metadata-newer': bytes(metadata({ minimumKubewardenVersion: '799.31337' })),
  'metadata-annotations': bytes(metadata({ annotations: { [SECRET]: 1 } })),
  'metadata-rules': bytes(
    metadata({ rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: [SECRET], operations: [SECRET] }] }),
  ),
  imports: bytes(importing(SECRET, SECRET)),
  'imports-of-host': bytes(Buffer.concat([importing('wapc', SECRET)])),
  'duplicate-exports': bytes(exporting(SECRET, SECRET)),
  protocol: bytes(
    Buffer.concat([
      exporting('__guest_call'),
      custom('io.kubewarden.metadata', JSON.stringify({ protocolVersion: SECRET })),
    ]),
  ),
};

describe('the module of a namespaced policy', () => {
  it('leaves no byte that its source sent in status, revisions and events, if it is no module', async () => {
    await using source = await TestServer.start((request, response) => {
      const [, name = ''] = (request.url ?? '').split('/');
      const answer = ANSWERS[name] ?? status(404);
      answer(request, response);
    });
    await using lab = await PolicyLab.start({
      policyServerStatus: true,
      sources: { ...DEFAULT_SOURCES, tenantHosts: [source.host], tenantModules: ['*'] },
    });
    await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const policies = Object.keys(ANSWERS).map((name) => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'AdmissionPolicy',
      metadata: { name, namespace: 'shop' },
      spec: {
        module: `${source.origin}/${name}`,
        settings: {},
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      },
    }));
    await Promise.all(policies.map(async (policy) => await lab.create(policy)));
    const failed = await Promise.all(policies.map(async (policy) => await lab.reaches(policy, 'Error')));
    await lab.quiet();
    for (const {
      metadata: { name },
      status: found,
    } of failed) {
      assert.ok(found?.message !== undefined && found.message.length > 20, name);
    }
    const kinds = [
      kind<Policy>('policies.kubewarden.io/v1', 'AdmissionPolicy'),
      POLICY_REVISIONS,
      POLICY_SERVER_REPLICAS,
      EVENTS,
    ];
    for (const type of kinds) {
      const { items } = await lab.cluster.admin.list<KubernetesObject>(type);
      assert.ok(items.length > 0, type.kind);
      for (const item of items) {
        const said = JSON.stringify([item['status'], item['reason'], item['message']]);
        assert.doesNotMatch(said.replaceAll(UNIQUE, ''), TRACES, `${type.kind} ${item.metadata.name}: ${said}`);
      }
    }
  });
});
