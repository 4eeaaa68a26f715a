import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Case, itValidates, object, review, server, validated } from './testing/validation-cases.ts';

const PEM_START = '-----BEGIN CERTIFICATE-----';

const SERVER_CASES: readonly Case[] = [
  ['a policy server', 'ps', server({ minAvailable: 1, limits: { cpu: '1' }, requests: { cpu: '500m' } }), []],
  ['a percentage', 'ps', server({ maxUnavailable: '50%' }), []],
  ['a percentage above 100%', 'ps', server({ maxUnavailable: '101%' }), ['spec.maxUnavailable [disruption-amount]']],
  ['a negative number', 'ps', server({ minAvailable: -1 }), ['spec.minAvailable [disruption-amount]']],
  [
    'a number in quotes',
    'ps',
    server({ minAvailable: '2' }),
    ['spec.minAvailable [disruption-amount]'],
    [],
    /write a number without quotes/,
  ],
  [
    'an invalid name of a Secret',
    'ps',
    server({ imagePullSecret: 'My Secret' }),
    ['spec.imagePullSecret [reference-name]'],
    [],
  ],
  [
    'unsupported fields',
    'ps',
    server({ image: 'ghcr.io/kubewarden/policy-server:v1', verificationConfig: 'v', sigstoreTrustConfig: 's' }),
    [],
    ['spec.image [not-supported]'],
  ],
  ['metrics on the port for webhooks', 'ps', server({ metricsPort: 443 }), ['spec.metricsPort [ports]']],
  ['no image', 'ps', server({ image: '' }), ['spec.image [reference-name]']],
  [
    'capabilities',
    'ps',
    server({ namespacedPoliciesCapabilities: ['*', 'oci/*', 'oci/v1/*', 'net/v1/dns_lookup_host'] }),
    [],
  ],
  [
    'invalid patterns of capabilities',
    'ps',
    server({ namespacedPoliciesCapabilities: ['oci', 'oci/**', ''] }),
    [0, 1, 2].map((index) => `spec.namespacedPoliciesCapabilities[${index}] [capability-pattern]`),
  ],
  ['the largest modules', 'ps', server({ maxModuleSize: '256Mi' }), []],
  ['modules that are too large', 'ps', server({ maxModuleSize: '257Mi' }), ['spec.maxModuleSize [module-size]']],
  [
    'a request above its limit',
    'ps',
    server({ limits: { memory: '1Gi' }, requests: { memory: '1025Mi' } }),
    ['spec.requests[memory] [resources]'],
    [],
    /at most the limit of 1Gi/,
  ],
  ['a negative quantity', 'ps', server({ limits: { cpu: '-1' } }), ['spec.limits[cpu] [resources]']],
  [
    'the same port twice',
    'ps',
    server({ readinessProbePort: 8443 }),
    ['spec.readinessProbePort [ports]'],
    [],
    /another port than spec\.webhookPort/,
  ],
  ['the port of the metrics service', 'ps', server({ webhookPort: 8080 }), []],
  ['a host twice, and the name of a container', 'ps', server({ insecureSources: ['a', 'a', 'my_registry:5000'] }), []],
  [
    'an invalid certificate',
    'ps',
    server({ sourceAuthorities: { 'a.example.com': [PEM_START] } }),
    ['spec.sourceAuthorities[a.example.com][0] [source-authority]'],
  ],
  [
    'invalid labels and annotations of pods',
    'ps',
    server({ labels: { a: 'b c' }, annotations: { 'a b': '' } }),
    ['spec.labels [pod-metadata]', 'spec.annotations [pod-metadata]'],
  ],
  ['an environment variable', 'ps', server({ env: [{ name: 'A_B', value: 'c' }] }), []],
  [
    'invalid environment variables',
    'ps',
    server({ env: [{ name: '' }, { name: 'A=B' }, { name: 'C', value: 'd', valueFrom: {} }] }),
    ['spec.env[0].name [environment]', 'spec.env[1].name [environment]', 'spec.env[2].valueFrom [environment]'],
  ],
];

describe('new policy servers', () => {
  itValidates(SERVER_CASES);
});

it('verification of signatures is refused where it would have no effect', () => {
  const spec = server({ verificationConfig: 'v', sigstoreTrustConfig: 's' });
  const { errors, text } = validated(review('ps', object('ps', spec)), { appliesVerification: false });
  assert.deepEqual(errors, ['spec.verificationConfig [verification]', 'spec.sigstoreTrustConfig [verification]']);
  assert.match(text, /--verification-path/);
});

describe('hosts that policies of namespaces may have modules from', () => {
  const errorsOf = (hosts: string): readonly string[] =>
    validated(review('ps', object('ps', server({}), { annotations: { 'portcullis.dev/tenant-module-hosts': hosts } })))
      .errors;

  it('are names or addresses with optional ports', () => {
    assert.deepEqual(errorsOf('modules.example.com, 10.0.0.5:8443,[fd00::1]'), []);
    assert.deepEqual(errorsOf('ok.example,https://modules.example.com'), [
      'metadata.annotations[portcullis.dev/tenant-module-hosts] [source-host]',
    ]);
  });
});

it('modules of namespaced policies are references, digests, or all', () => {
  const errorsOf = (modules: string): readonly string[] =>
    validated(review('ps', object('ps', server({}), { annotations: { 'portcullis.dev/tenant-modules': modules } })))
      .errors;
  assert.deepEqual(errorsOf(`builtin, registry://ghcr.io/a, https://example.com/b/,sha256:${'0'.repeat(64)}`), []);
  assert.deepEqual(errorsOf('*'), []);
  assert.deepEqual(errorsOf('registry://ghcr.io/a,sha256:12'), [
    'metadata.annotations[portcullis.dev/tenant-modules] [annotation]',
  ]);
});

it('mirrors of registries are URLs by the hosts of registries', () => {
  const errorsOf = (mirrors: string): readonly string[] =>
    validated(review('ps', object('ps', server({}), { annotations: { 'portcullis.dev/registry-mirrors': mirrors } })))
      .errors;
  assert.deepEqual(errorsOf('ghcr.io=https://mirror.example.com/ghcr.io,ghcr.io=http://10.0.0.5:5000'), []);
  for (const wrong of [
    'https://mirror.example.com',
    'ghcr.io=mirror.example.com',
    'ghcr.io=file:///var/lib/layout',
    'ghcr.io=https://user:password@mirror.example.com',
    'https://ghcr.io=https://mirror.example.com',
    '=https://mirror.example.com',
    Array.from({ length: 9 }, (_, index) => `ghcr.io=https://${index}.example`).join(),
  ]) {
    assert.deepEqual(errorsOf(wrong), ['metadata.annotations[portcullis.dev/registry-mirrors] [source-host]'], wrong);
  }
});
