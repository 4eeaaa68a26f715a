import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonValue } from '../values/json-text.ts';
import { checkNetworkPolicySupport } from './admission.ts';
import { parseNetworkPolicySettings } from './settings.ts';
import type { NetworkPolicySettings } from './settings.ts';

const RANGE = { egress: [{ ports: [{ port: 30_000, endPort: 32_000 }] }], policyTypes: ['Egress'] };
// Settings that rule out advisories of this version.
const SETTINGS = { 'enable-endpoint-routes': 'false', 'enable-gateway-api': 'false' };
const CILIUM = { name: 'cilium', version: '1.15.4', settings: SETTINGS };

function settings(value: unknown): NetworkPolicySettings {
  const parsed = parseNetworkPolicySettings(value);
  assert.ok(parsed.settings, JSON.stringify(parsed.problems));
  return parsed.settings;
}

const object = (spec: unknown): JsonValue => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'p', namespace: 'shop' },
  spec: spec as JsonValue,
});

const created = (spec: unknown) => ({ operation: 'CREATE', object: object(spec) });

describe('builtin:network-policy-support', () => {
  it('warns with the sentence', () => {
    assert.deepEqual(checkNetworkPolicySupport(created(RANGE), settings({ providers: [CILIUM] })), {
      accepted: true,
      warnings: ['Cilium 1.15.4 allows only port 30000, not 30000 to 32000'],
    });
  });

  it('is silent when the policy is supported', () => {
    const newer = settings({ providers: [{ ...CILIUM, version: '1.16.0' }] });
    assert.deepEqual(checkNetworkPolicySupport(created(RANGE), newer), { accepted: true, warnings: [] });
  });

  it('rejects only what is certainly not supported, and only if it is told to', () => {
    const denied = checkNetworkPolicySupport(created(RANGE), settings({ deny: true, providers: [CILIUM] }));
    assert.deepEqual(denied, {
      accepted: false,
      code: 403,
      message: 'Cilium 1.15.4 allows only port 30000, not 30000 to 32000',
      warnings: [],
    });
    const unknown = checkNetworkPolicySupport(
      created(RANGE),
      settings({ deny: true, providers: [{ name: 'cilium', settings: SETTINGS }] }),
    );
    assert.deepEqual(
      [unknown.accepted, unknown.warnings],
      [true, ['it is unknown whether Cilium enforces NetworkPolicies: it depends on the version']],
    );
  });

  it('says that nothing is known without a provider', () => {
    const { accepted, warnings } = checkNetworkPolicySupport(created({}), settings({}));
    assert.equal(accepted, true);
    assert.match(
      warnings.join(),
      /^it is unknown whether this NetworkPolicy is enforced: no network provider is known\./,
    );
  });

  it('uses detected providers unless the settings name some', () => {
    const detected = [{ name: 'flannel', version: '0.26.0' }, { name: 'unheard-of' }];
    assert.deepEqual(checkNetworkPolicySupport(created({}), settings({}), detected).warnings, [
      'Flannel alone 0.26.0 enforces no NetworkPolicy',
      'it is unknown what unheard-of does with this NetworkPolicy: the catalogue has no such provider',
    ]);
    assert.deepEqual(checkNetworkPolicySupport(created({}), settings({ providers: [CILIUM] }), detected).warnings, []);
  });

  it('warns of what a policy may use, by the defaults of settings, and of CIDRs with host bits', () => {
    const spec = { policyTypes: ['Egress'], egress: [{ to: [{ ipBlock: { cidr: '10.161.0.0/8' } }] }] };
    const providers = [{ name: 'cilium', version: '1.20.0' }];
    const { accepted, warnings } = checkNetworkPolicySupport(created(spec), settings({ providers, deny: true }));
    assert.equal(accepted, true);
    assert.match(warnings[0] ?? '', /^this NetworkPolicy has CIDRs .* "10\.161\.0\.0\/8" is ambiguous in this context/);
    assert.match(
      warnings[1] ?? '',
      /^Cilium 1\.20\.0 does not match IPs of pods .*, unless policy-cidr-match-mode contains "pods"/,
    );
    assert.ok(warnings.length >= 3, warnings.join());
  });

  it('puts the most dangerous first', () => {
    const providers = [CILIUM, { name: 'ovn-kubernetes', version: '1.3.0' }, { name: 'flannel' }];
    const spec = { ingress: [{ ports: [{ port: 'web' }, { protocol: 'UDP', port: 1, endPort: 2 }] }] };
    const { warnings } = checkNetworkPolicySupport(created(spec), settings({ providers }));
    assert.deepEqual(
      warnings.map((text) => text.split(' ', 1)[0]),
      ['Flannel', 'OVN-Kubernetes', 'Cilium'],
    );
  });

  it('ignores other operations, kinds, subresources, and updates that leave the spec as it is', () => {
    const all = settings({ deny: true, providers: [CILIUM] });
    const changed = { operation: 'UPDATE', object: object(RANGE), oldObject: object({}) };
    assert.equal(checkNetworkPolicySupport(changed, all).accepted, false);
    for (const request of [
      { ...changed, oldObject: object(RANGE) },
      { ...changed, subResource: 'status' },
      { operation: 'DELETE', oldObject: object(RANGE) },
      { operation: 'CREATE', object: { apiVersion: 'v1', kind: 'Pod' } },
      [],
      null,
    ]) {
      assert.deepEqual(checkNetworkPolicySupport(request, all), { accepted: true, warnings: [] });
    }
  });

  it('keeps warnings within the limits of API servers', () => {
    const names = [
      'cilium',
      'calico',
      'calico-windows',
      'antrea',
      'kube-router',
      'weave-net',
      'ovn-kubernetes',
      'kube-ovn',
      'aws-vpc-cni',
      'azure-npm',
      'azure-npm-windows',
      'canal',
      'kindnet',
    ];
    const ports = Array.from({ length: 99 }, (_, index) => ({ port: `${'x'.repeat(200)}${index}`, protocol: 'SCTP' }));
    const rules = [
      {
        from: [
          { ipBlock: { cidr: '2001:db8::/32', except: ['2001:db8::/48'] } },
          { namespaceSelector: {}, podSelector: {} },
        ],
        ports: [...ports, { port: 1, endPort: 3 }],
      },
    ];
    const { warnings } = checkNetworkPolicySupport(
      created({ ingress: rules }),
      settings({ providers: names.map((name) => ({ name, version: '0.0.1' })) }),
    );
    assert.ok(warnings.length > 5);
    assert.ok(warnings.every(({ length }) => length <= 256));
    assert.ok(warnings.join('').length <= 4096);
    assert.match(warnings.at(-1) ?? '', /^and \d+ more: portcullis netpol explain shows all$/);
  });
});

describe('its settings', () => {
  for (const [value, field, message] of [
    [[], '', /expected a mapping, got a list/],
    [{ denny: true }, 'denny', /did you mean "deny"\?/],
    [{ deny: 'yes' }, 'deny', /expected true or false, got "yes"/],
    [{ providers: [{ name: 'cillium' }] }, 'providers[0].name', /got "cillium": did you mean cilium\?/],
    [{ providers: [{ version: '1' }] }, 'providers[0]', /expected the key "name"/],
    [
      { providers: [{ name: 'cilium', settings: { 'enable-sctpp': 'true' } }] },
      'providers[0].settings.enable-sctpp',
      /unknown key/,
    ],
    [{ providers: Array.from({ length: 17 }, () => CILIUM) }, 'providers', /expected at most 16 providers, got 17/],
    [
      { catalogue: [{ name: 'x', features: { EndPort: [] } }] },
      'catalogue[0].features.EndPort',
      /expected 1 to 64 rows/,
    ],
  ] as const) {
    it(`${JSON.stringify(value).slice(0, 60)} are refused`, () => {
      const [problem] = parseNetworkPolicySettings(value).problems ?? [];
      assert.equal(problem?.field, field);
      assert.match(problem?.message ?? '', message);
    });
  }

  it('may extend the catalogue', () => {
    const row = {
      versions: '*',
      support: 'Unsupported',
      effect: 'FailOpen',
      evidence: 'Inferred',
      checked: '2026-11-24',
    };
    const extended = settings({
      catalogue: [{ name: 'mine', inherits: 'cilium', features: { Egress: [row] } }],
      providers: [{ ...CILIUM, name: 'mine', version: '1.16.0' }],
    });
    assert.deepEqual(checkNetworkPolicySupport(created(RANGE), extended).warnings, [
      'mine 1.16.0 does not restrict egress',
    ]);
  });
});
