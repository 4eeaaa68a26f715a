import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { parseReference } from '../modules/index.ts';
import type { AdmissionPolicySpec } from '../resources/index.ts';
import { pinnedSpec } from './pinned-spec.ts';

const A = `sha256:${'a'.repeat(64)}`;
const B = `sha256:${'b'.repeat(64)}`;

function spec(settings: string, rest: object = {}): object {
  return { module: 'registry://example.com/policy:v1', mutating: false, rules: [], settings: { settings }, ...rest };
}

/** A reference as it is understood, without its tag; undefined if it is malformed. */
function parsed(text: string): string | undefined {
  try {
    const reference = parseReference(text);
    const digest = reference.kind === 'registry' ? reference.manifest : reference.digest;
    const location = reference.kind === 'registry' ? `${reference.host}/${reference.repository}` : reference.key;
    return digest === undefined ? location : `${location}@${digest}`;
  } catch {
    return undefined;
  }
}

describe('pinning the modules of a spec', () => {
  for (const [what, module, digest, expected] of [
    ['a tag', 'registry://example.com/policy:v1', A, `registry://example.com/policy:v1@${A}`],
    ['an address', 'https://example.com/policy.wasm', A, `https://example.com/policy.wasm@${A}`],
    ['a file', 'file://./policy.wasm', A, `file://./policy.wasm@${A}`],
    ['a reference with a digest', `file:///policy.wasm@${A}`, A, `file:///policy.wasm@${A}`],
    [
      'a reference with a digest in capitals',
      `file:///policy.wasm@${A.toUpperCase()}`,
      A,
      `file:///policy.wasm@${A.toUpperCase()}`,
    ],
    ['a tag with a space behind it', 'ghcr.io/policy:v1 \n', A, `ghcr.io/policy:v1@${A}`],
    ['an address whose path has an @', `https://example.com/@${A}/p.wasm`, B, `https://example.com/@${A}/p.wasm@${B}`],
    ['a builtin module', 'builtin:cel', 'builtin:cel@0.1.0', 'builtin:cel'],
  ] as const) {
    it(`of ${what}`, () => {
      const before = spec('1', { module });
      assert.deepEqual(pinnedSpec(before, [{ name: 'policy', module, digest }]), spec('1', { module: expected }));
      assert.deepEqual(before, spec('1', { module }));
    });
  }

  it('gives a reference to the same module that is pinned, whatever the reference', () => {
    const references = fc.tuple(
      fc.constantFrom('registry://ghcr.io/a/b', 'GHCR.io/a', 'https://example.com/x@y.wasm', 'file:///p.wasm'),
      fc.constantFrom('', ':v1', '?a=b', `@${A}`, `@${A.toUpperCase()}`),
      fc.constantFrom('', ' ', '\n\t'),
    );
    fc.assert(
      fc.property(references, (parts) => {
        const module = parts.join('');
        const before = parsed(module);
        const { module: after } = pinnedSpec({ module }, [{ name: 'p', module, digest: B }]);
        const isPinned = before?.includes('@sha256:');
        assert.equal(parsed(after), isPinned === true ? before : before && `${before}@${B}`);
      }),
    );
  });

  it('names the manifest of a module from a registry, not the module', () => {
    const modules = [{ name: 'policy', module: 'ghcr.io/policy:v1', digest: A, manifest: B }];
    const pinned = pinnedSpec(spec('1', { module: 'ghcr.io/policy:v1' }), modules);
    assert.deepEqual(pinned, spec('1', { module: `ghcr.io/policy:v1@${B}` }));
  });

  it('leaves modules without a digest unchanged', () => {
    assert.deepEqual(pinnedSpec(spec('1'), []), spec('1'));
    assert.deepEqual(pinnedSpec(spec('1'), [{ name: 'policy', module: 'other', digest: A }]), spec('1'));
  });

  it('pins each member of a group to its own digest', () => {
    const policies = {
      one: { module: 'https://example.com/latest.wasm', settings: { a: 1 } },
      two: { module: 'https://example.com/latest.wasm' },
      cel: { module: 'builtin:cel' },
    };
    const group = { policies, expression: 'one() && two()', message: 'no' } as unknown as AdmissionPolicySpec;
    const { module } = policies.one;
    const pinned = pinnedSpec(group, [
      { name: 'one', module, digest: A },
      { name: 'two', module, digest: B },
      { name: 'cel', module: 'builtin:cel', digest: 'builtin:cel@0.1.0' },
    ]);
    assert.deepEqual(pinned, {
      ...group,
      policies: {
        one: { module: `${module}@${A}`, settings: { a: 1 } },
        two: { module: `${module}@${B}` },
        cel: { module: 'builtin:cel' },
      },
    });
  });
});
