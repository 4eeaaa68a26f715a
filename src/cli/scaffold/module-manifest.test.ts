import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseMetadata } from '../../modules/index.ts';
import { manifestOf, type ManifestOptions } from './module-manifest.ts';

const MODULE = 'registry://registry.example.com/policies/one:v1.0.0';
const OPTIONS: ManifestOptions = {
  module: MODULE,
  type: 'ClusterAdmissionPolicy',
  settings: {},
  title: undefined,
  isContextAware: false,
};
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
const TITLE = { 'io.kubewarden.policy.title': 'one' };
const READS = [{ apiVersion: 'v1', kind: 'Namespace' }];

const metadata = (fields: object): ReturnType<typeof parseMetadata> =>
  parseMetadata({ rules: RULES, annotations: TITLE, ...fields });

describe('manifestOf', () => {
  it('has the fields of Kubewarden’s manifests in their order, and none that have their defaults', () => {
    const { manifest, notes } = manifestOf(metadata({}), OPTIONS);
    assert.equal(
      JSON.stringify(manifest),
      JSON.stringify({
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'one' },
        spec: { module: MODULE, settings: {}, rules: RULES, mutating: false },
      }),
    );
    assert.deepEqual(notes, []);
  });

  it('takes severity, category, backgroundAudit and mutating from the metadata', () => {
    const kept = { 'io.kubewarden.policy.category': 'PSP', 'io.kubewarden.policy.severity': 'medium' };
    const annotations = { ...TITLE, ...kept, 'io.kubewarden.policy.author': 'somebody' };
    const { manifest } = manifestOf(metadata({ annotations, backgroundAudit: false, mutating: true }), {
      ...OPTIONS,
      settings: { a: [1] },
      title: 'other',
    });
    assert.deepEqual(manifest['metadata'], { annotations: kept, name: 'other' });
    assert.deepEqual(manifest['spec'], {
      module: MODULE,
      settings: { a: [1] },
      rules: RULES,
      mutating: true,
      backgroundAudit: false,
    });
  });

  it('grants reads only when it is told to, and never to policies of a namespace', () => {
    const cases = [
      ['ClusterAdmissionPolicy', false, undefined, /use --allow-context-aware/],
      ['ClusterAdmissionPolicy', true, READS, /check that it should/],
      ['AdmissionPolicy', true, undefined, /policies of a namespace may not/],
    ] as const;
    for (const [type, isContextAware, granted, note] of cases) {
      const { manifest, notes } = manifestOf(metadata({ contextAwareResources: READS }), {
        ...OPTIONS,
        type,
        isContextAware,
      });
      assert.deepEqual((manifest['spec'] as Record<string, unknown>)['contextAwareResources'], granted);
      assert.match(notes.join(), note);
    }
  });

  it('refuses metadata that make no policy', () => {
    const cases = [
      [{ annotations: {} }, /have no title/],
      [{ annotations: { 'io.kubewarden.policy.title': 'My policy' } }, /"My policy" cannot be the name/],
      [{ policyType: 'raw' }, /is for raw requests/],
      [{ rules: [] }, /have no rules/],
    ] as const;
    for (const [fields, message] of cases) {
      assert.throws(() => manifestOf(metadata(fields), OPTIONS), message);
    }
  });
});
