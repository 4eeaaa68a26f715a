import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import * as fc from 'fast-check';

import { customSections, withCustomSection } from './custom-section.ts';
import { ModuleError } from '../reference/errors.ts';
import {
  METADATA_LIMIT_BYTES,
  METADATA_SECTION,
  parseMetadata,
  readMetadata,
  requireProtocol,
  requireSupportedVersion,
  writeMetadata,
} from './metadata.ts';
import type { PolicyMetadata } from './metadata.ts';
import { testModule } from '../testing/test-module.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

const FULL: PolicyMetadata = {
  protocolVersion: 'v1',
  rules: [
    { apiGroups: ['', 'apps'], apiVersions: ['*'], resources: ['pods', 'pods/exec'], operations: ['CREATE', 'UPDATE'] },
  ],
  annotations: { 'io.kubewarden.policy.title': 'A policy', 'io.kubewarden.policy.usage': 'é\n' },
  mutating: true,
  backgroundAudit: false,
  executionMode: 'wasi',
  policyType: 'raw',
  contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
  hostCapabilities: ['net/*'],
  minimumKubewardenVersion: '1.20.0',
};

function annotated(json: unknown): Uint8Array {
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  return withCustomSection(testModule(), METADATA_SECTION, Buffer.from(text));
}

describe('metadata of a module', () => {
  it('are read as they were written', () => {
    const module = writeMetadata(testModule('content'), FULL);
    assert.ok(WebAssembly.validate(module));
    assert.deepEqual(readMetadata(module), FULL);
    assert.equal(WebAssembly.Module.customSections(new WebAssembly.Module(module), 'x').length, 1);
  });

  it('take the place of older ones', () => {
    const module = writeMetadata(writeMetadata(testModule(), FULL), { ...FULL, mutating: false });
    assert.equal(customSections(module, METADATA_SECTION).length, 1);
    assert.equal(readMetadata(module)?.mutating, false);
  });

  it('may be missing', () => {
    assert.equal(readMetadata(testModule('content')), undefined);
  });

  it('have defaults, and may hold nulls and unknown keys', () => {
    assert.deepEqual(readMetadata(annotated({ protocolVersion: null, executionMode: null, rules: null, later: 1 })), {
      rules: [],
      annotations: {},
      mutating: false,
      backgroundAudit: true,
      policyType: 'kubernetes',
      contextAwareResources: [],
      hostCapabilities: [],
    });
  });

  it('do not reach the prototype', () => {
    const metadata = readMetadata(annotated('{"annotations":{"__proto__":"x"},"__proto__":{"mutating":true}}'));
    assert.equal(metadata?.mutating, false);
    assert.deepEqual(Object.keys(metadata?.annotations ?? {}), ['__proto__']);
  });

  const wrong: [string, unknown, RegExp][] = [
    ['no JSON', '{', /not valid JSON/],
    ['another encoding', '"\\ud800', /not valid JSON/],
    ['a list', [1], /at the top: expected a mapping, got a list/],
    ['a number as flag', { mutating: 1 }, /at mutating: expected true or false, got 1/],
    ['an unknown mode', { executionMode: 'python' }, /at executionMode: expected one of kubewarden-wapc/],
    ['an unknown type', { policyType: 'x' }, /at policyType/],
    [
      'annotations that are no text',
      { annotations: { 'a.b': 1 } },
      /at annotations\["a\.b"\]: expected a string, got 1/,
    ],
    ['a resource without kind', { contextAwareResources: [{ apiVersion: 'v1' }] }, /contextAwareResources\[0\]\.kind/],
    ['an empty capability', { hostCapabilities: ['a', ''] }, /at hostCapabilities\[1\]/],
    ['a version that is none', { minimumKubewardenVersion: 'latest' }, /at minimumKubewardenVersion: .*like 1\.30\.0/],
    ['rules that are no list', { rules: {} }, /at rules: expected a list/],
    ['a rule without groups', { rules: [{ ...RULE, apiGroups: [] }] }, /rules\[0\]\.apiGroups.*at least one/],
    ['a rule without operations', { rules: [RULE, { ...RULE, operations: undefined }] }, /rules\[1\]\.operations/],
    ['an unknown operation', { rules: [{ ...RULE, operations: ['PATCH'] }] }, /rules\[0\]\.operations\[0\]/],
  ];
  for (const [what, json, says] of wrong) {
    it(`are refused with ${what}`, () => {
      assert.throws(() => readMetadata(annotated(json)), { code: 'metadata-invalid', message: says });
    });
  }

  it('are refused when there are two, or when they are too large', () => {
    const one = annotated('{}');
    const twice = new Uint8Array([...one, ...one.subarray(8)]);
    assert.throws(() => readMetadata(twice), { code: 'metadata-invalid', message: /one section/ });
    assert.throws(() => readMetadata(annotated(' '.repeat(METADATA_LIMIT_BYTES + 1))), { code: 'metadata-invalid' });
    const annotations = { a: 'x'.repeat(METADATA_LIMIT_BYTES) };
    assert.throws(() => writeMetadata(testModule(), { ...FULL, annotations }), { code: 'metadata-invalid' });
  });

  it('of a module that is cut off are not read', () => {
    const module = annotated({});
    assert.throws(() => readMetadata(module.subarray(0, -1)), { code: 'not-wasm', message: /truncated/ });
    assert.throws(() => readMetadata(module.subarray(0, 7)), { code: 'not-wasm' });
    assert.throws(() => readMetadata(Uint8Array.of(...testModule(), 0, 0xff, 0xff, 0xff, 0xff, 0xff)), {
      code: 'not-wasm',
    });
  });
});

describe('wildcards of rules', () => {
  const cases: [Partial<typeof RULE>, boolean][] = [
    [{ apiGroups: ['*'] }, true],
    [{ apiGroups: ['*', ''] }, false],
    [{ apiVersions: ['*', 'v1'] }, false],
    [{ apiVersions: [''] }, false],
    [{ operations: ['*'] }, true],
    [{ operations: ['*', 'CREATE'] }, false],
    [{ resources: [''] }, false],
    [{ resources: ['*'] }, true],
    [{ resources: ['*', 'pods'] }, false],
    [{ resources: ['*', 'pods/exec'] }, true],
    [{ resources: ['*', '*/status'] }, true],
    [{ resources: ['*/*'] }, true],
    [{ resources: ['*/*', 'pods'] }, false],
    [{ resources: ['pods/*', 'pods'] }, true],
    [{ resources: ['pods/*', 'pods/exec'] }, false],
    [{ resources: ['pods/exec', 'pods/*'] }, true],
    [{ resources: ['*/scale', 'deployments/scale'] }, false],
    [{ resources: ['*/scale', 'deployments/status'] }, true],
  ];
  for (const [change, isValid] of cases) {
    it(`${isValid ? 'accept' : 'refuse'} ${JSON.stringify(change)}`, () => {
      const parse = (): unknown => parseMetadata({ rules: [{ ...RULE, ...change }] });
      if (isValid) {
        parse();
      } else {
        assert.throws(parse, { code: 'metadata-invalid', message: /rules\[0\]\./ });
      }
    });
  }
});

describe('requirements of a module', () => {
  it('waPC modules must state protocol v1', () => {
    requireProtocol(FULL);
    assert.throws(() => requireProtocol(undefined), { code: 'protocol-unsupported', message: /annotate/ });
    for (const protocolVersion of [undefined, 'v2', 'Unknown']) {
      assert.throws(() => requireProtocol(parseMetadata({ protocolVersion })), { code: 'protocol-unsupported' });
    }
  });

  it('a newer minor or major version is refused, the patch does not count', () => {
    const needs = (minimumKubewardenVersion: string) => () =>
      requireSupportedVersion(parseMetadata({ minimumKubewardenVersion }));
    for (const version of ['0.99.0', '1.37.0', '1.37.99', '1.37', 'v1.36.0-rc.1']) {
      needs(version)();
    }
    for (const version of ['1.38.0', '2.0.0', 'v1.38.0-alpha.1']) {
      assert.throws(needs(version), { code: 'version-unsupported', message: /at most 1\.37/ });
    }
    requireSupportedVersion(undefined);
  });
});

describe('hostile modules', () => {
  const readsOrRefuses = (bytes: Uint8Array): void => {
    try {
      readMetadata(bytes);
    } catch (error) {
      assert.ok(error instanceof ModuleError, String(error));
      assert.ok(['metadata-invalid', 'not-wasm'].includes(error.code));
    }
  };

  it('of any bytes are read or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (tail) => readsOrRefuses(Uint8Array.of(...testModule(), ...tail))),
    );
  });

  it('with a flipped or missing byte are read or refused', () => {
    const module = writeMetadata(testModule('content'), FULL);
    fc.assert(
      fc.property(fc.nat(module.length - 1), fc.nat(255), fc.nat(module.length), (at, value, end) => {
        readsOrRefuses(module.with(at, value).subarray(0, end));
      }),
    );
  });

  it('with any JSON are read or refused, and what is read can be written', () => {
    const base = fc.constantFrom(...Object.keys(FULL), 'x');
    fc.assert(
      fc.property(fc.dictionary(base, fc.jsonValue()), (value) => {
        try {
          const metadata = parseMetadata(value);
          assert.deepEqual(readMetadata(writeMetadata(testModule(), metadata)), metadata);
        } catch (error) {
          assert.ok(error instanceof ModuleError, String(error));
        }
      }),
    );
  });

  it('keep every section that is not replaced', () => {
    const section = fc.tuple(fc.constantFrom('a', 'b', METADATA_SECTION), fc.uint8Array({ maxLength: 300 }));
    fc.assert(
      fc.property(fc.array(section, { maxLength: 5 }), fc.uint8Array(), (entries, content) => {
        const sections = entries.map(([name, bytes]) => withCustomSection(testModule(), name, bytes).subarray(8));
        const module = Uint8Array.from([...testModule(), ...sections.flatMap((bytes) => [...bytes])]);
        const replaced = withCustomSection(module, METADATA_SECTION, content);
        assert.deepEqual(
          customSections(replaced, METADATA_SECTION).map((bytes) => [...bytes]),
          [[...content]],
        );
        for (const name of ['a', 'b']) {
          assert.deepEqual(customSections(replaced, name), customSections(module, name));
        }
      }),
    );
  });
});
