import { describe } from 'node:test';
import { type Case, judges, server } from './testing/judgement.ts';

const PEM_START = '-----BEGIN CERTIFICATE-----';

const SERVER_CASES: readonly Case[] = [
  ['a policy server', 'ps', server({ minAvailable: 1, limits: { cpu: '1' }, requests: { cpu: '500m' } }), []],
  ['a percentage', 'ps', server({ maxUnavailable: '50%' }), []],
  ['more than all', 'ps', server({ maxUnavailable: '101%' }), ['spec.maxUnavailable [disruption-amount]']],
  ['less than none', 'ps', server({ minAvailable: -1 }), ['spec.minAvailable [disruption-amount]']],
  [
    'a number in quotes',
    'ps',
    server({ minAvailable: '2' }),
    ['spec.minAvailable [disruption-amount]'],
    [],
    /a number stands without quotes/,
  ],
  [
    'a bad name of a secret',
    'ps',
    server({ imagePullSecret: 'My Secret' }),
    ['spec.imagePullSecret [reference-name]'],
    ['spec.imagePullSecret [not-supported]'],
  ],
  [
    'what cannot be done yet',
    'ps',
    server({ image: 'ghcr.io/kubewarden/policy-server:v1', verificationConfig: 'v', sigstoreTrustConfig: 's' }),
    [],
    ['verificationConfig', 'image', 'sigstoreTrustConfig'].map((field) => `spec.${field} [not-supported]`),
  ],
  ['metrics where webhooks are', 'ps', server({ metricsPort: 443 }), ['spec.metricsPort [ports]']],
  ['no image', 'ps', server({ image: '' }), ['spec.image [reference-name]']],
  [
    'capabilities',
    'ps',
    server({ namespacedPoliciesCapabilities: ['*', 'oci/*', 'oci/v1/*', 'net/v1/dns_lookup_host'] }),
    [],
  ],
  [
    'capabilities that are none',
    'ps',
    server({ namespacedPoliciesCapabilities: ['oci', 'oci/**', ''] }),
    [0, 1, 2].map((index) => `spec.namespacedPoliciesCapabilities[${index}] [capability-pattern]`),
  ],
  [
    'more asked for than allowed',
    'ps',
    server({ limits: { memory: '1Gi' }, requests: { memory: '1025Mi' } }),
    ['spec.requests[memory] [resources]'],
    [],
    /at most the limit of 1Gi/,
  ],
  ['less than nothing', 'ps', server({ limits: { cpu: '-1' } }), ['spec.limits[cpu] [resources]']],
  [
    'one port twice',
    'ps',
    server({ readinessProbePort: 8443 }),
    ['spec.readinessProbePort [ports]'],
    [],
    /another port than spec\.webhookPort/,
  ],
  ['the port of the metrics service', 'ps', server({ webhookPort: 8080 }), []],
  ['a host twice, and one of a container', 'ps', server({ insecureSources: ['a', 'a', 'my_registry:5000'] }), []],
  [
    'no certificate',
    'ps',
    server({ sourceAuthorities: { 'a.example.com': [PEM_START] } }),
    ['spec.sourceAuthorities[a.example.com][0] [source-authority]'],
  ],
  [
    'labels of pods',
    'ps',
    server({ labels: { a: 'b c' }, annotations: { 'a b': '' } }),
    ['spec.labels [pod-metadata]', 'spec.annotations [pod-metadata]'],
  ],
  ['variables', 'ps', server({ env: [{ name: 'A_B', value: 'c' }] }), []],
  [
    'bad variables',
    'ps',
    server({ env: [{ name: '' }, { name: 'A=B' }, { name: 'C', value: 'd', valueFrom: {} }] }),
    ['spec.env[0].name [environment]', 'spec.env[1].name [environment]', 'spec.env[2].valueFrom [environment]'],
  ],
];

describe('new policy servers', () => {
  judges(SERVER_CASES);
});
