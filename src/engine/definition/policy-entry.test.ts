import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parsePolicies } from './policies-file.ts';
import type { AdmissionPolicyObject } from '../../resources/index.ts';
import { policyId } from '../../resources/index.ts';
import { policyEntry } from './policy-entry.ts';

function policy(kind: string, metadata: object, spec: object): AdmissionPolicyObject {
  return { apiVersion: 'policies.kubewarden.io/v1', kind, metadata, spec } as AdmissionPolicyObject;
}

const single = (spec: object): AdmissionPolicyObject =>
  policy('ClusterAdmissionPolicy', { name: 'p' }, { module: 'builtin:pod-security', mutating: false, ...spec });

describe('policyId', () => {
  it('is unique for kind, namespace and name', () => {
    const ids = ['ClusterAdmissionPolicy', 'AdmissionPolicy', 'ClusterAdmissionPolicyGroup', 'AdmissionPolicyGroup']
      .flatMap((kind) =>
        (kind.startsWith('Cluster') ? [undefined] : ['a', 'g', 'a-b']).map((namespace) => [kind, namespace] as const),
      )
      .flatMap(([kind, namespace]) =>
        ['a', 'b', 'a.b', 'g.a.b'].map((name) =>
          policyId({ kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } }),
        ),
      );
    assert.equal(new Set(ids).size, ids.length);
  });
});

describe('policyEntry', () => {
  it('contains the fields that a policy server reads', () => {
    const entry = policyEntry(
      single({
        mode: 'monitor',
        mutating: true,
        message: 'no',
        failurePolicy: 'Ignore',
        settings: { a: 1 },
        timeoutEvalSeconds: 3,
        contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
      }),
    );
    assert.deepEqual(entry, {
      policyMode: 'monitor',
      allowedToMutate: true,
      message: 'no',
      failurePolicy: 'Ignore',
      module: 'builtin:pod-security',
      settings: { a: 1 },
      timeoutEvalSeconds: 3,
      contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
      hostCapabilities: ['*'],
    });
  });

  it('contains what happens to pod templates, if this version knows it', () => {
    const checked = ['Warn', 'Enforce', 'Ignore', 'OfANewerVersion', 7].map((podTemplates) => {
      const entry = policyEntry(single({ podTemplates })) as { podTemplates?: string };
      return entry.podTemplates;
    });
    assert.deepEqual(checked, ['Warn', 'Enforce', undefined, undefined, undefined]);
  });

  it('contains the members of a group', () => {
    const group = policy(
      'ClusterAdmissionPolicyGroup',
      { name: 'g' },
      {
        expression: 'a()',
        message: 'no',
        policies: { a: { module: 'builtin:pod-security' }, constructor: { module: 'x' } },
      },
    );
    const entry = policyEntry(group) as { policies: object };
    assert.deepEqual(Object.keys(entry.policies), ['a', 'constructor']);
    assert.ok(!('allowedToMutate' in entry));
  });

  it('resolves relative module files, and no others', () => {
    const modulesUrl = pathToFileURL('/modules/');
    const moduleOf = (module: string): unknown =>
      (policyEntry(single({ module }), { modulesUrl }) as { module: string }).module;
    assert.equal(moduleOf('file://./a/policy.wasm'), 'file:///modules/a/policy.wasm');
    assert.equal(moduleOf('file:///a/policy.wasm'), 'file:///a/policy.wasm');
    assert.equal(moduleOf('registry://example.com/a:v1'), 'registry://example.com/a:v1');
  });

  it('keeps any settings unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 2, depthSize: 'xsmall' }), (value) => {
        const settings = JSON.parse(JSON.stringify({ value })) as object;
        const text = JSON.stringify({ p: policyEntry(single({ settings })) });
        const [read] = parsePolicies(text, 'policies.yml').policies;
        // Settings that a policy server cannot accept, such as numbers that lose digits, are a mistake in this policy.
        if (read !== undefined) {
          assert.ok('settingsJson' in read);
          assert.equal(read.settingsJson, JSON.stringify(settings));
        }
      }),
      { numRuns: 30 },
    );
  });
});
