import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkModules } from './prevalidation-result.ts';
import type { PinnedModule, PrevalidationRequest } from './replica-protocol.ts';

const [DIGEST, OTHER] = [`sha256:${'a'.repeat(64)}`, `sha256:${'b'.repeat(64)}`];

function request(spec: object): PrevalidationRequest {
  return { kind: 'ClusterAdmissionPolicy', metadata: { name: 'p' }, spec } as unknown as PrevalidationRequest;
}

function pinned(module: string, rest: Partial<PinnedModule> = {}): PinnedModule {
  return { name: 'p', module, digest: DIGEST, ...rest };
}

describe('checkModules', () => {
  const one = (module: string): PrevalidationRequest => request({ module });
  const group = request({ policies: { a: { module: 'registry://r/a:1' }, b: { module: 'builtin:cel' } } });
  const member = pinned('registry://r/a:1', { name: 'a' });
  const members = [pinned('builtin:cel', { name: 'b', digest: 'builtin:cel@1' }), member];

  it('accepts the modules of the policy, with the digests that its references name', () => {
    checkModules(one('registry://r/a:1'), [pinned('registry://r/a:1', { manifest: OTHER })]);
    checkModules(one(`registry://r/a:1@${OTHER}`), [pinned(`registry://r/a:1@${OTHER}`, { manifest: OTHER })]);
    checkModules(one(`https://r/a.wasm@${DIGEST}`), [pinned(`https://r/a.wasm@${DIGEST}`)]);
    checkModules(one('file://./a.wasm'), [pinned('file://./a.wasm')]);
    checkModules(group, members);
  });

  for (const [what, policy, modules, message] of [
    ['no module', one('builtin:cel'), [], /expected modules: 1, as the policy has, got 0/],
    ['two modules', one('https://r/a'), [pinned('https://r/a'), pinned('https://r/a')], /modules: 1, .* got 2/],
    [
      'the module of another reference',
      one('https://r/a'),
      [pinned('https://r/b')],
      /by the name "p", got "https:\/\/r\/b"/,
    ],
    ['another name', one('https://r/a'), [pinned('https://r/a', { name: '__proto__' })], /by the name "__proto__"/],
    ['one member twice', group, [member, member], /by the name "a"/],
    [
      'another digest',
      one(`https://r/a@${OTHER}`),
      [pinned(`https://r/a@${OTHER}`)],
      /expected the digest sha256:b+ .* got "sha256:a+"/,
    ],
    [
      'another manifest',
      one(`r.io/a@${OTHER}`),
      [pinned(`r.io/a@${OTHER}`, { manifest: DIGEST })],
      /the digest sha256:b+ .* got "sha256:a+"/,
    ],
    ['no manifest', one(`r.io/a@${OTHER}`), [pinned(`r.io/a@${OTHER}`)], /the digest sha256:b+ .* got nothing/],
  ] as const) {
    it(`rejects ${what}`, () => {
      assert.throws(() => checkModules(policy, modules), { name: 'TypeError', message });
    });
  }
});
