// Objects, schemas and patches that an attacker made expensive. They are rejected, or take no longer than other input of their
// size. Without the limits, each test would exceed the memory or the timeout of the test runner.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  applyJsonPatch,
  labelSelector,
  MAX_ERROR_CHARACTERS,
  MAX_SHIFTED_ELEMENTS,
  parseLabelSelector,
} from '../resources/index.ts';
import type { FieldError, JsonObject, KubernetesObject, MutableObject, Schema } from '../resources/index.ts';
import { FieldSet, mergeApplied } from '../resources/structured-merge/index.ts';
import { MAX_FOUND_CHARACTERS, ObjectSchema } from '../resources/validation/index.ts';
import { servedKind } from './testing/served-kind.ts';
import { MAX_COLUMNS } from './custom-resources/custom-columns.ts';
import { definitionsOfCustomResource } from './custom-resources/custom-resource.ts';
import { checkStructural } from './custom-resources/structural-schemas/structural.ts';
import { applyStrategicMergePatch } from './patches/strategic-merge-patch.ts';
import { trackUpdate } from './server-side-apply/track-update.ts';

const list = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index));
const record = <T>(length: number, make: (index: number) => T): Record<string, T> =>
  Object.fromEntries(list(length, (index) => [`f${index}`, make(index)]));

const objectOf = (spec: unknown): KubernetesObject => ({
  apiVersion: 'e.com/v1',
  kind: 'W',
  metadata: { name: 'a' },
  spec,
});

const schemaOf = (spec: object): Schema => ({
  type: 'object',
  properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' }, spec },
});

const errorsOf = (spec: object, value: unknown, old?: unknown): readonly FieldError[] =>
  new ObjectSchema(schemaOf(spec)).validate(objectOf(value), old === undefined ? undefined : objectOf(old));

const sizeOf = (errors: readonly FieldError[]): number =>
  errors.reduce((sum, { field, message }) => sum + field.length + message.length, 0);

describe('validation by a schema ends', () => {
  const cases: readonly (readonly [string, object, unknown])[] = [
    ['with a wrong value everywhere', { type: 'array', items: { type: 'string' } }, list(200_000, () => 1)],
    [
      'with a long name in every path',
      { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
      { ['k'.repeat(500_000)]: list(50_000, () => 1) },
    ],
    [
      'with a long enum in every message',
      { type: 'array', items: { type: 'string', enum: list(10_000, (index) => `v${index}`) } },
      list(50_000, () => 'x'),
    ],
    [
      'with many required fields',
      { type: 'array', items: { type: 'object', required: Object.keys(record(10_000, () => 1)) } },
      list(50_000, () => ({})),
    ],
    [
      'with many properties',
      { type: 'array', items: { type: 'object', properties: record(10_000, () => ({ type: 'string' })) } },
      list(50_000, () => ({})),
    ],
    [
      'with many alternatives',
      { type: 'array', items: { anyOf: list(5_000, (index) => ({ required: [`f${index}`] })) } },
      list(50_000, () => ({})),
    ],
    [
      'with alternatives of alternatives',
      list(40, () => 0).reduce<object>((inner) => ({ oneOf: [inner, inner] }), { minimum: 1 }),
      0,
    ],
  ];
  for (const [name, schema, value] of cases) {
    it(name, () => {
      const errors = errorsOf(schema, value);
      assert.ok(errors.length < 5_000 && sizeOf(errors) < 4 * MAX_ERROR_CHARACTERS);
      assert.match(errors.at(-1)?.message ?? '', /^Too many: (?:more than \d+ checks by the schema|\d+ more errors)/u);
    });
  }

  it('and accepts long enums, and unchanged values in updates', () => {
    const items = { type: 'string', enum: list(10_000, (index) => `v${index}`) };
    assert.deepEqual(
      errorsOf(
        { type: 'array', items },
        list(100_000, () => 'v9999'),
      ),
      [],
    );
    const wrong = record(50_000, () => 'x');
    assert.deepEqual(errorsOf({ type: 'object', additionalProperties: items }, { ...wrong, f: 'v1' }, wrong), []);
  });

  it('for rules that compare old lists with new ones', () => {
    const schema = {
      type: 'object',
      'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
      additionalProperties: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'integer' } },
    };
    const old = record(20_000, () => [1, 2]);
    assert.deepEqual(
      errorsOf(
        schema,
        record(20_000, () => [2, 1]),
        old,
      ),
      [],
    );
  });
});

describe('unknown fields and defaults', () => {
  it('are all removed, and reported up to a limit', () => {
    const schema = schemaOf({ type: 'object', additionalProperties: { type: 'object' } });
    const key = 'k'.repeat(500_000);
    const object = objectOf({ [key]: record(50_000, () => 1) });
    const found = new ObjectSchema(schema).prune(object as MutableObject);
    assert.ok(found.join('').length < 2 * MAX_FOUND_CHARACTERS);
    assert.deepEqual(object['spec'], { [key]: {} });
  });

  it('cannot fill the memory', () => {
    const items = { type: 'object', properties: { a: { type: 'array', default: list(1_000, (index) => index) } } };
    const object = objectOf(list(200_000, () => ({})));
    new ObjectSchema(schemaOf({ type: 'array', items })).applyDefaults(object as MutableObject);
    const elements = object['spec'] as readonly { readonly a?: unknown }[];
    assert.deepEqual(elements[0], { a: list(1_000, (index) => index) });
    assert.deepEqual(elements.at(-1), {});
  });
});

describe('declarations of kinds', () => {
  it('may repeat keys, and have schemas that are none', () => {
    const keys = list(50_000, () => 'a');
    const schema = { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys };
    const errors = checkStructural(schemaOf({ ...schema, items: { type: 'object' } }), 'schema');
    assert.ok(errors.length > 0 && sizeOf(errors) < 4 * MAX_ERROR_CHARACTERS);
    assert.deepEqual(checkStructural(schemaOf({ type: 'object', additionalProperties: null }), 'schema'), []);
    assert.equal(checkStructural(schemaOf({ type: 'object', additionalProperties: { type: 1 } }), 'schema').length, 2);
  });

  it('are printed in a bounded number of columns', () => {
    const additionalPrinterColumns = list(5_000, (index) => ({ name: `c${index}`, type: 'string', jsonPath: '..a' }));
    const [definition] = definitionsOfCustomResource({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'ws.e.com' },
      spec: {
        group: 'e.com',
        scope: 'Cluster',
        names: { plural: 'ws', kind: 'W' },
        versions: [{ name: 'v1', served: true, storage: true, additionalPrinterColumns }],
      },
    });
    assert.equal(definition?.printer?.columns.length, MAX_COLUMNS + 1);
  });
});

describe('selectors', () => {
  it('of very many terms are read and matched', () => {
    const keys = list(100_000, (index) => `a${index}`);
    assert.equal(parseLabelSelector(keys.map((key) => `!${key}`).join(',')).matches({ b: 'c' }), true);
  });

  it('with many invalid values report some of them', () => {
    const values = list(100_000, (index) => `-${index}`);
    const expression = { key: '/'.repeat(500_000), operator: 'In', values };
    assert.throws(
      () => labelSelector({ matchExpressions: [expression] }),
      (error: Error) => error.name === 'SelectorError' && error.message.length < 1_000_000,
    );
  });
});

describe('patches', () => {
  const pods = servedKind('v1', 'Pod')?.schema() ?? {};
  const containers = (length: number, name: string, more = {}): JsonObject => ({
    spec: { containers: list(length, (index) => ({ name: `${name}${index}`, ...more })) },
  });

  it('merge long lists', () => {
    const merged = applyStrategicMergePatch(containers(40_000, 'a'), containers(40_000, 'b'), pods);
    assert.equal((merged['spec'] as { containers: unknown[] }).containers.length, 80_000);
    const removed = applyStrategicMergePatch(merged, containers(40_000, 'a', { $patch: 'delete' }), pods);
    assert.equal((removed['spec'] as { containers: unknown[] }).containers.length, 40_000);
    const finalizers = list(60_000, (index) => `f${index}`);
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': finalizers } };
    assert.deepEqual(applyStrategicMergePatch({ metadata: { finalizers } }, patch, pods), {
      metadata: { finalizers: [] },
    });
  });

  it('do not shift long lists again and again', () => {
    const steps = list(10_000, () => ({ op: 'add', path: '/a/0', value: 1 }));
    const text = `error in add for path: '/a/0': The operations shift elements of lists by more than ${MAX_SHIFTED_ELEMENTS} places: replace the lists`;
    assert.throws(() => applyJsonPatch({ a: list(500_000, () => 1) }, steps), { code: 'too-large', message: text });
    assert.equal((applyJsonPatch({ a: [] }, steps) as { a: unknown[] }).a.length, 10_000);
  });
});

describe('sets of fields', () => {
  it('do not nest deeper in their texts than elsewhere', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    for (const key of [`v:${deep}`, `k:{"a":${deep}}`]) {
      assert.throws(() => FieldSet.parse({ [key]: {} }), { name: 'MergeError' });
    }
  });

  it('of thousands of managers become one', () => {
    const managedFields = list(5_000, (index) => ({
      manager: `m${index}`,
      operation: 'Update',
      apiVersion: 'e.com/v1',
      time: '2020-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { [`f:a${index}`]: {} } },
    }));
    const schema = schemaOf({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    const live = objectOf({ b: 1 });
    const updated = trackUpdate({
      definition: {
        group: 'e.com',
        version: 'v1',
        resource: 'ws',
        kind: 'W',
        schema: () => schema,
        origin: 'custom',
        hasStatus: false,
      },
      live,
      updated: { ...live, spec: { b: 2 }, metadata: { name: 'a', managedFields } } as KubernetesObject,
      manager: 'me',
      now: 0,
    });
    const { managedFields: left = [] } = updated.metadata;
    assert.equal(left.length, 10);
    const ancient = left.find(({ manager }) => manager === 'ancient-changes')?.fieldsV1?.['f:spec'] ?? {};
    // The manager of this update has the oldest time, 1970, so its entry is merged, too.
    assert.equal(Object.keys(ancient).length, 5_000 - 9 + 1);
  });
});

describe('names of Object.prototype', () => {
  it('are ordinary ones everywhere', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const fields = JSON.parse(`{${names.map((name) => `"${name}":{"a":1}`).join(',')}}`) as JsonObject;
    const schema = schemaOf({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    const merged = mergeApplied({ spec: {} }, { spec: fields }, schema);
    assert.deepEqual(Object.keys(merged['spec'] as object), names);
    const patched = applyStrategicMergePatch({}, { metadata: { labels: fields } }, {});
    assert.deepEqual(Object.keys((patched['metadata'] as { labels: object }).labels), names);
    const added = applyJsonPatch(
      { a: {} },
      names.map((name) => ({ op: 'add', path: `/a/${name}`, value: 1 })),
    );
    assert.deepEqual(Object.keys((added as { a: object }).a), names);
    const set = FieldSet.parse(JSON.parse(`{${names.map((name) => `"f:${name}":{}`).join(',')}}`));
    assert.equal(set.size, names.length);
    const declared = {
      type: 'object',
      properties: JSON.parse('{"__proto__":{"type":"object","default":{"polluted":1}}}'),
    };
    const object = objectOf({});
    new ObjectSchema(schemaOf(declared)).applyDefaults(object as MutableObject);
    assert.deepEqual(Object.keys(object['spec'] as object), ['__proto__']);
    assert.equal(Object.hasOwn(Object.prototype, 'polluted') || 'a' in {}, false);
  });
});
