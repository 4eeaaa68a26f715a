import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallContext } from '../../wasm/index.ts';
import { NetworkPolicyGuest } from './network-policy-guest.ts';

const REQUEST = Buffer.from(
  JSON.stringify({
    operation: 'CREATE',
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { namespace: 'shop', name: 'myegress' },
      spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ ports: [{ port: 30_000, endPort: 32_000 }] }] },
    },
  }),
);
const ROW = { versions: '*', support: 'Supported', evidence: 'Inferred', checked: '2026-11-24' };

/** The warnings, with these NetworkPolicyProviders in the cluster. @param items undefined: they cannot be read */
function warnings(items: readonly object[] | undefined, ownSettings: object = {}): readonly string[] | null {
  const hostCall: CallContext['hostCall'] = (...call) => {
    assert.deepEqual(call.slice(0, 3), ['kubewarden', 'kubernetes', 'list_resources_all']);
    return items === undefined ? assert.fail('forbidden') : Buffer.from(JSON.stringify({ items }));
  };
  const context = { hostCall } as CallContext;
  const input = { requestJson: REQUEST, settingsJson: JSON.stringify(ownSettings), isRaw: false };
  return new NetworkPolicyGuest().validate(input, context).warnings;
}

// A setting that rules out an advisory of these versions.
const settings = { 'enable-gateway-api': 'false' };

const provider = (version: string, spec: object = {}, isPresent = 'True'): object => ({
  metadata: { name: 'cilium' },
  spec,
  status: { isPresent, version, settings },
});

describe('builtin:network-policy-support', () => {
  it('warns by the detected providers of the cluster', () => {
    assert.deepEqual(warnings([provider('v1.15.4')]), ['Cilium 1.15.4 allows only port 30000, not 30000 to 32000']);
    assert.equal(warnings([provider('v1.16.0')]), null);
  });

  it('uses the providers of its settings instead', () => {
    assert.equal(warnings(undefined, { providers: [{ name: 'cilium', version: '1.16.0', settings }] }), null);
  });

  it('uses declared capabilities, and none with mistakes', () => {
    assert.equal(warnings([provider('v1.15.4', { capabilities: { features: { EndPort: [ROW] } } })]), null);
    assert.equal(warnings([provider('v1.15.4', { capabilities: { features: { EndPort: 5 } } })])?.length, 1);
  });

  for (const [name, items] of [
    ['cannot be read', undefined],
    ['do not count', [provider('v1.15.4', {}, 'False')]],
    ['are malformed', [5, { metadata: 5, status: [] }] as unknown as readonly object[]],
  ] as const) {
    it(`says that no provider is known when providers ${name}`, () => {
      const [first = '', ...others] = warnings(items) ?? [];
      assert.match(first, /no network provider is known/);
      assert.deepEqual(others, []);
    });
  }
});
