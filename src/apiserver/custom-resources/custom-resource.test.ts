import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import { acceptNames } from './custom-resource-names.ts';
import { customResourceErrors } from './custom-resource-validation.ts';
import { applyCustomResourceDefaults, definitionsOfCustomResource } from './custom-resource.ts';

type Mutable = KubernetesObject & MutableObject;

function crd(version: object = {}, spec: object = {}): Mutable {
  const object: Mutable = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing', shortNames: ['th'], categories: ['all'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } },
          ...version,
        },
      ],
      ...spec,
    },
  };
  applyCustomResourceDefaults(object);
  return object;
}

const thing = (spec: object = {}): KubernetesObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 'a', namespace: 'b', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec,
});

describe('CustomResourceDefinitions', () => {
  it('define a kind for each version that is served', () => {
    const versions = ['v1', 'v2', 'v3'].map((name) => ({
      name,
      served: name !== 'v2',
      storage: name === 'v1',
      schema: { openAPIV3Schema: { type: 'object' } },
    }));
    const kinds = definitionsOfCustomResource(crd({}, { versions }));
    assert.deepEqual(
      kinds.map(({ group, version, resource, kind, singular, namespaced, shortNames, categories }) =>
        [group, version, resource, kind, singular, namespaced, ...shortNames, ...categories].join(' '),
      ),
      ['example.com v1 things Thing thing true th all', 'example.com v3 things Thing thing true th all'],
    );
  });

  it('have the deprecation warning of a version, or that of API servers', () => {
    const warningOf = (version: object): string | undefined =>
      definitionsOfCustomResource(crd(version))[0]?.deprecation;
    assert.equal(warningOf({ deprecated: true }), 'example.com/v1 Thing is deprecated');
    assert.equal(warningOf({ deprecated: true, deprecationWarning: 'use gadgets' }), 'use gadgets');
    assert.equal(warningOf({}), undefined);
  });

  it('print names and ages where they declare no columns', () => {
    const [kind] = definitionsOfCustomResource(crd());
    assert.deepEqual(
      kind?.printer.columns.map(({ name }) => name),
      ['Name', 'Age'],
    );
    assert.deepEqual(kind?.printer.cells(thing(), Date.parse('2026-01-03T00:00:00Z')), ['a', '2d']);
  });

  it('print columns by their types', () => {
    const additionalPrinterColumns = [
      { name: 'Text', type: 'string', jsonPath: '.spec.list' },
      { name: 'Count', type: 'integer', jsonPath: '.spec.count' },
      { name: 'Wrong', type: 'integer', jsonPath: '.spec.list' },
      { name: 'Flag', type: 'boolean', jsonPath: '.spec.flag' },
      { name: 'When', type: 'date', jsonPath: '.spec.when', priority: 1 },
      { name: 'None', type: 'string', jsonPath: '.spec.none' },
    ];
    const [kind] = definitionsOfCustomResource(crd({ additionalPrinterColumns }));
    const object = thing({ list: [1, '<'], count: 2, flag: true, when: '2026-01-01T00:00:00Z' });
    const cells = kind?.printer.cells(object, Date.parse('2026-01-01T00:00:05Z'));
    assert.deepEqual(cells, ['a', String.raw`[1,"\u003c"]`, 2, null, true, '5s', null]);
    assert.equal(kind?.printer.columns[5]?.priority, 1);
  });

  it('check the numbers of the scale subresource', () => {
    const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
    const [kind] = definitionsOfCustomResource(crd({ subresources: { scale } }));
    assert.deepEqual(kind?.validate?.(thing(), undefined), []);
    assert.deepEqual(
      kind?.validate?.(thing({ replicas: -1 }), undefined).map(({ field, message }) => `${field}: ${message}`),
      ['.spec.replicas: Invalid value: -1: should be a non-negative integer'],
    );
  });

  it('keep their group and names, and their scope once they are established', () => {
    const old = { ...crd(), status: { storedVersions: ['v1'], conditions: [{ type: 'Established', status: 'True' }] } };
    const changed = crd(
      {},
      { scope: 'Cluster', names: { plural: 'things', kind: 'Other', listKind: 'OtherList', singular: 'other' } },
    );
    assert.deepEqual(
      customResourceErrors(changed, old).map(({ field }) => field),
      ['spec.scope', 'spec.names.kind'],
    );
  });

  it('tolerate any definition', () => {
    for (const spec of [{ versions: [1, null, {}] }, { versions: {}, names: [] }, { names: { shortNames: [1] } }]) {
      const odd = crd({}, spec);
      definitionsOfCustomResource(odd);
      assert.ok(customResourceErrors(odd).length > 0);
    }
  });

  it('with schemas that are nested too deeply are rejected', () => {
    let schema: object = { type: 'object' };
    for (let level = 0; level < 2_000; level += 1) {
      schema = { type: 'object', properties: { a: schema } };
    }
    const errors = customResourceErrors(crd({ schema: { openAPIV3Schema: schema } }));
    assert.match(errors.map(({ message }) => message).join(), /nested more than 256 levels deep/u);
  });
});

describe('names of kinds', () => {
  const accepted = {
    ...crd(),
    status: {
      acceptedNames: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList', shortNames: ['th'] },
    },
  };
  const other = (names: object): Mutable => {
    const object = crd({}, { names: { plural: 'others', kind: 'Other', ...names } });
    return { ...object, metadata: { name: 'others.example.com' } };
  };

  it('are accepted when they are not taken', () => {
    const { status, reason, names } = acceptNames(other({}), [accepted]);
    assert.deepEqual([status, reason, names.plural], ['True', 'NoConflicts', 'others']);
    assert.equal(acceptNames(accepted, [accepted]).status, 'True');
  });

  it('belong to who had them first', () => {
    const results = [{ singular: 'thing' }, { kind: 'Thing' }, { shortNames: ['th', 'x'] }].map((names) => {
      const { status, reason, message } = acceptNames(other(names), [accepted]);
      return `${status} ${reason} ${message}`;
    });
    assert.deepEqual(results, [
      'False SingularConflict "thing" is already in use',
      'False ListKindConflict "ThingList" is already in use',
      'False ShortNamesConflict "th" is already in use',
    ]);
  });
});
