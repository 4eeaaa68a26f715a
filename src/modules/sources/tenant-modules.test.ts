import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ModuleError } from '../reference/errors.ts';
import { parseReference } from '../reference/module-reference.ts';
import { assertTenantModule, tenantModuleProblem } from './tenant-modules.ts';

const ONE = `sha256:${'1'.repeat(64)}`;
const TWO = `sha256:${'2'.repeat(64)}`;

function isAllowed(reference: string, ...allowed: readonly string[]): boolean {
  try {
    assertTenantModule(parseReference(reference), allowed);
    return true;
  } catch (error) {
    assert.ok(error instanceof ModuleError);
    assert.equal(error.code, 'source-forbidden');
    return false;
  }
}

describe('the modules that namespaced policies may use', () => {
  const cases: readonly (readonly [entry: string, allowed: readonly string[], refused: readonly string[]])[] = [
    [
      'registry://ghcr.io/kubewarden/policies',
      [
        'registry://ghcr.io/kubewarden/policies/pod-privileged:v1.0.0',
        'ghcr.io/kubewarden/policies/deep/er@' + ONE,
        'registry://ghcr.io/kubewarden/policies:v1',
        'registry://ghcr.io:443/kubewarden/policies/x:v1',
      ],
      [
        'registry://ghcr.io/kubewarden/policies-evil/x:v1',
        'registry://ghcr.io/kubewarden:v1',
        'registry://ghcr.io:8443/kubewarden/policies/x:v1',
        'registry://evil.example.com/kubewarden/policies/x:v1',
        'https://ghcr.io/kubewarden/policies/x.wasm',
      ],
    ],
    ['registry://ghcr.io', ['registry://ghcr.io/a/b:v1'], ['registry://ghcr.io.evil.example.com/a/b:v1']],
    ['registry://localhost:5000/a/', ['registry://localhost:5000/a/b:v1'], ['registry://localhost:5001/a/b:v1']],
    [
      'registry://ghcr.io/a/b:v1',
      ['registry://ghcr.io/a/b:v1'],
      ['registry://ghcr.io/a/b:v2', 'registry://ghcr.io/a/b/c:v1', 'registry://ghcr.io/a/b'],
    ],
    [
      `registry://ghcr.io/a/b@${ONE}`,
      [`registry://ghcr.io/a/b@${ONE}`, `registry://ghcr.io/a/b:v7@${ONE}`],
      [`registry://ghcr.io/a/b@${TWO}`, `registry://ghcr.io/a/b:v7`],
    ],
    [
      'https://modules.example.com/shared',
      [
        'https://modules.example.com/shared/a.wasm',
        'https://MODULES.example.com:443/shared/b/../a.wasm?x=1',
        'https://user:word@modules.example.com/shared/a.wasm',
      ],
      [
        'https://modules.example.com/shared/../other/a.wasm',
        'https://modules.example.com/shared/%2e%2e/other/a.wasm',
        'https://modules.example.com/shared/..%2fother/a.wasm',
        'https://modules.example.com/shared\\..\\other/a.wasm',
        'https://modules.example.com/sharedx/a.wasm',
        'http://modules.example.com/shared/a.wasm',
        'https://modules.example.com:8443/shared/a.wasm',
        'https://modules.example.com@evil.example.com/shared/a.wasm',
      ],
    ],
    ['file:///policies', ['file:///policies/a.wasm'], ['file:///policies/../etc/a.wasm', 'file:///policies2/a.wasm']],
    [
      ONE,
      [`https://anywhere.example.com/a.wasm@${ONE}`, `registry://ghcr.io/a/b:v1@${ONE}`],
      [`https://anywhere.example.com/a.wasm@${TWO}`, 'https://anywhere.example.com/a.wasm'],
    ],
  ];
  for (const [entry, allowed, refused] of cases) {
    it(`${entry} allows what is below it, and nothing beside it`, () => {
      assert.equal(tenantModuleProblem(entry), undefined);
      for (const reference of allowed) {
        assert.ok(isAllowed(reference, 'registry://other.example.com/x', entry), reference);
      }
      for (const reference of refused) {
        assert.ok(!isAllowed(reference, 'registry://other.example.com/x', entry), reference);
      }
    });
  }

  it('are all for *, and none without an entry', () => {
    assert.ok(isAllowed('https://anywhere.example.com/a.wasm', '*'));
    assert.ok(!isAllowed('https://anywhere.example.com/a.wasm'));
  });

  it('are named in the error, as far as they fit', () => {
    const allowed = Array.from({ length: 7 }, (_, index) => `registry://ghcr.io/${index}`);
    assert.throws(
      () => assertTenantModule(parseReference('https://user:secret@example.com/a.wasm?token=secret'), allowed),
      (error: Error) => {
        assert.match(error.message, /^namespaced policies may use builtin modules, and registry:\/\/ghcr\.io\/0, /);
        assert.match(error.message, /ghcr\.io\/4 and 2 more, got https:\/\/example\.com\/a\.wasm\?…: /);
        assert.match(error.message, /portcullis\.dev\/tenant-modules/);
        assert.ok(!error.message.includes('secret'));
        return true;
      },
    );
  });

  it('are refused where they are malformed', () => {
    for (const entry of ['', 'ftp://x/y', 'sha256:12', '**', 'file://./relative', 'registry://', 'https://']) {
      assert.match(tenantModuleProblem(entry) ?? '', /^expected registry:/, entry);
    }
  });

  it('never throw for other reasons', () => {
    fc.assert(fc.property(fc.string(), (entry) => typeof tenantModuleProblem(entry) !== 'number'));
    fc.assert(fc.property(fc.webUrl(), fc.webUrl(), (entry, url) => typeof isAllowed(url, entry) === 'boolean'));
  });
});
