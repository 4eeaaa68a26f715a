// What a policy's status says about each way in which a registry can fail or lie, and that its last good revision serves on.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import { keyOf, type KubernetesObject, policyId } from '../../src/resources/index.ts';
import { skipWithoutRegistry } from '../cluster/binaries.ts';
import { kind, type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import { example, moduleBytes, moduleVariant, requiredLabel, review } from '../server/harness.ts';
import { type Fault, FaultProxy } from './fault-proxy.ts';
import { Registry } from './registry-lab.ts';
import { PASSWORD } from './registry-user.ts';

const good = await moduleBytes(example('required-labels'));
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';

/** A module that behaves like the good one and has other bytes. */
function variant(name: string): Buffer {
  return moduleVariant(good, name);
}

/** The bytes with another one in their middle. */
function changed(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  const middle = copy.length >> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}

function answer(status: number, body: string | Uint8Array = '', headers: Record<string, string> = {}): Fault {
  return (_request, response) => void response.writeHead(status, headers).end(body);
}

/** Half of an answer, then the end of the connection. */
function half(bytes: Uint8Array): Fault {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
  };
}

/** An answer that goes on for as long as it is read, up to 100 MB. */
const endless: Fault = (_request, response) => {
  const chunk = Buffer.alloc(100_000, ' ');
  let sent = 0;
  const write = (): void => {
    while (sent < 1e8 && !response.destroyed) {
      sent += chunk.length;
      if (!response.write(chunk)) {
        return;
      }
    }
    response.end();
  };
  response.writeHead(200).on('drain', write);
  write();
};

/** A failure of the registry while it sends the version `v2` of a policy. */
interface Failure {
  readonly what: string;
  readonly part: 'manifest' | 'layer';
  readonly fault: (module: Uint8Array, name: string) => Fault;
  readonly reason: string;
  readonly message: RegExp;
  /** Whether the reference has the digest of its manifest. */
  readonly isPinned?: boolean;
  /** Whether the policy is one of a namespace. */
  readonly isOfTenant?: boolean;
}

/** The name of a failure's policy. */
function nameOf({ what }: Failure): string {
  const words = what.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return words.slice(0, 40).replace(/-$/, '');
}

function manifestOf(module: Uint8Array, layer: object = {}): string {
  const descriptor = { mediaType: 'application/wasm', digest: digestOf(module), size: module.length, ...layer };
  return JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST_TYPE, layers: [descriptor] });
}

function fails(
  part: Failure['part'],
  what: string,
  fault: Failure['fault'],
  reason: string,
  message: RegExp,
  rest: Partial<Failure> = {},
): Failure {
  return { part, what, fault, reason, message, ...rest };
}

describe(
  'the status of a policy whose module cannot be pulled',
  { skip: skipWithoutRegistry(), timeout: 400_000 },
  () => {
    let registry: Registry;
    let proxy: FaultProxy;
    let lab: PolicyLab;
    const times: string[] = [];

    before(async () => {
      registry = await Registry.start();
      proxy = await FaultProxy.start(registry);
      lab = await PolicyLab.start({
        sources: { ...(await registry.sources(proxy)), tenantHosts: [proxy.host], tenantModules: ['*'] },
      });
      await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    });
    after(async () => {
      await lab?.[Symbol.asyncDispose]();
      await proxy?.[Symbol.asyncDispose]();
      await registry?.[Symbol.asyncDispose]();
      process.stdout.write(`from the answer of the registry until the status, ms:\n${times.join('\n')}\n`);
    });

    /** A registry that names a token service, and the answer of that service. */
    const tokenService =
      (realm: string, token: Fault) =>
      (_module: Uint8Array, name: string): Fault => {
        const challenge = `Bearer realm="${realm.replace('PROXY', `https://${proxy.host}`)}/${name}",service="registry"`;
        const refuse = answer(401, '', { 'www-authenticate': challenge });
        proxy.anonymousFaults.set(`/faults/${name}/`, refuse);
        proxy.faults.set(`/token/${name}`, token);
        return refuse;
      };
    const json = (value: object): string => JSON.stringify(value);

    const failures: readonly Failure[] = [
      fails('manifest', 'missing credentials', () => answer(401), 'Unauthorized', /answered 401/),
      fails('manifest', 'missing rights', () => answer(403), 'AccessDenied', /answered 403/),
      fails('manifest', 'a missing artifact', () => answer(404), 'ModuleNotFound', /answered 404/),
      fails('layer', 'a missing layer', () => answer(404), 'ModuleNotFound', /answered 404/),
      fails('manifest', 'a rate limit', () => answer(429, '', { 'retry-after': '900' }), 'RateLimited', /in 900 s/),
      fails('manifest', 'an error of the registry', () => answer(500), 'SourceFailed', /answered 500/),
      fails('layer', 'an error while the layer is read', () => answer(502), 'SourceFailed', /answered 502/),
      fails('manifest', 'HTML', () => answer(200, '<html>Sign in</html>'), 'InvalidManifest', /is this a registry/),
      fails('manifest', 'a manifest of 100 MB', () => endless, 'InvalidManifest', /too large/),
      fails(
        'manifest',
        'a wrong byte in the manifest',
        (module) => answer(200, changed(Buffer.from(manifestOf(module)))),
        'DigestMismatch',
        /manifest of .* is another one/,
        { isPinned: true },
      ),
      fails(
        'layer',
        'a wrong byte in the layer',
        (module) => answer(200, changed(module)),
        'DigestMismatch',
        /other bytes/,
      ),
      fails('layer', 'HTML in place of the layer', () => answer(200, '<html>'), 'SizeMismatch', /another size/),
      fails(
        'manifest',
        'a wrong size',
        (module) => answer(200, manifestOf(module, { size: 7 })),
        'SizeMismatch',
        /7 bytes/,
      ),
      fails(
        'manifest',
        'a foreign media type',
        (module) => answer(200, manifestOf(module, { mediaType: 'text/plain' })),
        'UnsupportedMediaType',
        /"text\/plain"/,
      ),
      fails(
        'manifest',
        'half a manifest',
        (module) => half(Buffer.from(manifestOf(module))),
        'FetchFailed',
        /lost|ended early/,
      ),
      fails('layer', 'half a layer', (module) => half(module), 'FetchFailed', /lost|ended early/),
      fails(
        'manifest',
        'a redirect to itself',
        () =>
          ({ url }, response) =>
            void response.writeHead(307, { location: url }).end(),
        'FetchFailed',
        /redirects too often/,
      ),
      fails(
        'layer',
        'a redirect to a private address, of a policy of a namespace',
        () => answer(307, '', { location: 'https://10.0.0.1/latest/meta-data' }),
        'InvalidDefinition',
        /leads to a private or special address/,
        { isOfTenant: true },
      ),
      fails(
        'manifest',
        'a token service that is no URL',
        tokenService('file:///etc', answer(500)),
        'Unauthorized',
        /https:\/\/ URL/,
      ),
      fails(
        'manifest',
        'a token service at a private address, of a policy of a namespace',
        tokenService('https://10.0.0.1/token', answer(500)),
        'InvalidDefinition',
        /leads to a private or special address/,
        { isOfTenant: true },
      ),
      fails(
        'manifest',
        'a token service without a token',
        tokenService('PROXY/token', answer(200, json({}))),
        'Unauthorized',
        /well-formed token/,
      ),
      fails(
        'manifest',
        'a token service that answers HTML',
        tokenService('PROXY/token', answer(200, '<html>')),
        'Unauthorized',
        /not JSON/,
      ),
      fails(
        'manifest',
        'a token service that answers without end',
        tokenService('PROXY/token', endless),
        'Unauthorized',
        /more than 262144 bytes/,
      ),
      fails(
        'manifest',
        'a token that the registry does not accept',
        tokenService('PROXY/token', answer(200, json({ token: 'wrong' }))),
        'Unauthorized',
        /answered 401/,
      ),
    ];

    before(async () => {
      for (const failure of failures) {
        await registry.push(`faults/${nameOf(failure)}`, 'v1', good);
      }
      const policies = failures.map((failure) => policyOf(failure));
      await Promise.all(policies.map((policy) => lab.create(policy)));
      await Promise.all(policies.map((policy) => lab.reaches(policy, 'Active')));
    });

    const repositoryOf = (failure: Failure): string => `registry://${proxy.host}/faults/${nameOf(failure)}`;
    const policyOf = (failure: Failure): KubernetesObject => ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: failure.isOfTenant === true ? 'AdmissionPolicy' : 'ClusterAdmissionPolicy',
      metadata: { name: nameOf(failure), ...(failure.isOfTenant === true ? { namespace: 'shop' } : {}) },
      spec: {
        module: `${repositoryOf(failure)}:v1`,
        settings: { labels: [nameOf(failure)] },
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      },
    });

    for (const failure of failures) {
      const { what, part, fault, reason, message, isPinned = false } = failure;
      it(`says ${reason} for ${what}, and the last good revision serves on`, async () => {
        const [name, policy] = [nameOf(failure), policyOf(failure)];
        const module = variant(name);
        const manifest = await registry.push(`faults/${name}`, 'v2', module);
        const [tag, path] = isPinned ? [`v2@${manifest}`, `/manifests/${manifest}`] : ['v2', '/manifests/v2'];
        proxy.faults.set(
          `/v2/faults/${name}${part === 'manifest' ? path : `/blobs/${digestOf(module)}`}`,
          fault(module, name),
        );
        await lab.merge(kind<Policy>(policy.apiVersion, policy.kind), keyOf(policy), {
          spec: { module: `${repositoryOf(failure)}:${tag}` },
        });
        const { status } = await lab.reaches(policy, 'Degraded');
        times.push(`${(performance.now() - proxy.faultedAtMs).toFixed(0).padStart(6)}  ${what}`);
        assert.equal(status?.reason, reason, status?.message);
        assert.match(status?.message ?? '', message);
        assert.doesNotMatch(JSON.stringify(status), new RegExp(PASSWORD));
        assert.equal(requiredLabel(await lab.server.review(policyId(policy), review())), name);
      });
    }
  },
);
