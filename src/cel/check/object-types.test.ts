import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { formatType, ObjectTypes } from './index.ts';
import type { StructuralSchema } from './index.ts';

const TEXT: StructuralSchema = { type: 'string' };
const COMPONENTS: Readonly<Record<string, StructuralSchema>> = {
  'io.k8s.Meta': { type: 'object', properties: { name: TEXT, labels: { type: 'object', additionalProperties: TEXT } } },
  'io.k8s.Container': {
    type: 'object',
    properties: { image: TEXT, ports: { type: 'array', items: { type: 'integer' } } },
  },
  'io.k8s.Debugger': { type: 'object', properties: { image: TEXT, target: TEXT } },
  'io.k8s.Tree': { type: 'object', properties: { children: { type: 'array', items: { $ref: '#/io.k8s.Tree' } } } },
};
const THING: StructuralSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        containers: { type: 'array', items: { $ref: '#/io.k8s.Container' } },
        initial: { type: 'array', items: { allOf: [{ $ref: '#/io.k8s.Container' }], default: {} } },
        debuggers: { type: 'array', items: { $ref: '#/io.k8s.Debugger' } },
        tree: { $ref: '#/io.k8s.Tree' },
        unresolved: { $ref: '#/none' },
        port: { 'x-kubernetes-int-or-string': true },
        ratio: { type: 'number' },
        replicas: { type: 'integer' },
        paused: { type: 'boolean' },
        at: { type: 'string', format: 'date-time' },
        data: { type: 'string', format: 'byte' },
        anything: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        partly: { type: 'object', properties: { known: TEXT }, 'x-kubernetes-preserve-unknown-fields': true },
        template: { type: 'object', properties: { size: { type: 'integer' } }, 'x-kubernetes-embedded-resource': true },
      },
    },
  },
};

const types = new ObjectTypes({
  resolve: (reference) => COMPONENTS[reference.slice(2)],
  metadata: { $ref: '#/io.k8s.Meta' },
});
const environment = createEnvironment({ variables: { object: types.declareKind('Thing', THING) }, types });

function typeOf(text: string): string {
  const { type, issues } = environment.inferType(text);
  return issues.length > 0 ? issues.map(({ message }) => message).join('; ') : formatType(type);
}

describe('types of objects', () => {
  const fields: readonly (readonly [field: string, type: string])[] = [
    ['object.kind', 'string'],
    ['object.metadata.labels', 'map(string, string)'],
    ['object.spec.containers', 'list(Container)'],
    ['object.spec.initial', 'list(Container)'],
    ['object.spec.tree.children[0].children[0]', 'Tree'],
    ['object.spec.replicas', 'int'],
    ['object.spec.paused', 'bool'],
    ['object.spec.template.metadata.name', 'string'],
    ['object.spec.template.kind', 'string'],
    ['object.spec.partly.known', 'string'],
  ];
  for (const [field, type] of fields) {
    it(`are ${type} for ${field}`, () => assert.equal(typeOf(field), type));
  }

  it('are those of JSON: times and base64 are strings, numbers may be integers', () => {
    assert.equal(typeOf('object.spec.at'), 'string');
    assert.equal(typeOf('object.spec.data'), 'string');
    assert.equal(typeOf('object.spec.ratio'), 'dyn');
  });

  it('are open where the schema is', () => {
    for (const field of ['unresolved', 'port', 'anything.a.b', 'partly.more']) {
      assert.equal(typeOf(`object.spec.${field}`), 'dyn', field);
    }
  });

  it('have no other fields', () => {
    assert.equal(typeOf('object.spec.container'), "undefined field 'container'");
    assert.equal(typeOf('has(object.spec.paussed)'), "undefined field 'paussed'");
    assert.equal(typeOf('object.?spec.?paussed'), "undefined field 'paussed'");
    assert.equal(typeOf('object.spec.containers.all(c, has(c.img))'), "undefined field 'img'");
    assert.equal(typeOf('object.constructor'), "undefined field 'constructor'");
    assert.equal(typeOf('object.spec.__proto__'), "undefined field '__proto__'");
  });

  it('suggest a field', () => {
    assert.deepEqual(environment.inferType('object.spec.pausd').issues[0]?.hints, ["did you mean 'paused'?"]);
  });

  it('of united structs have the fields of both', () => {
    const all = '(object.spec.containers + object.spec.initial + object.spec.debuggers)';
    assert.equal(typeOf(`${all}.map(c, c.target)`), 'list(string)');
    assert.equal(typeOf(`${all}.map(c, c.ports)`), 'list(list(int))');
    assert.equal(typeOf(`${all}.map(c, c.imag)`), "undefined field 'imag'");
    assert.equal(typeOf('[object.spec, object.metadata].all(x, has(x.labels) || has(x.port))'), 'bool');
  });
});

describe('expressions about JSON', () => {
  const valid = [
    'object.spec.replicas == null || object.metadata.labels != null',
    '"paused" in object.spec',
    'object.spec.all(field, field != "x") && object.spec.exists(key, value, key == "a" && value == 1)',
    'object.spec == {} || object.spec == {"paused": true} || size(object.spec) > 1',
    'object.spec.paused ? object.spec.replicas : "none"',
    '(has(object.spec.template) ? object.spec.template : {}).?size.orValue(0) > 1',
    '[object.spec.replicas, object.metadata.name].size() == 2',
    'type(object.spec) == map',
    'dyn(object.spec).other == 1',
    'object.spec.tree.children.all(t, t.children.all(u, u == t || u.children.size() > 1))',
  ];
  for (const text of valid) {
    it(`accept ${text}`, () => assert.deepEqual(environment.inferType(text).issues, []));
  }

  it('have other errors still', () => {
    assert.match(typeOf('object.spec.replicas > "1"'), /no matching overload for '_>_' applied to '\(int, string\)'/u);
    assert.match(typeOf('object.metadata.name.startsWith(1)'), /no matching overload for 'startsWith'/u);
    assert.match(typeOf('object.metadata.name.x'), /type 'string' does not support field selection/u);
    assert.match(typeOf('object.spec.replicas ? 1 : 2'), /expected type 'bool' but found 'int'/u);
  });

  it('have a type in spite of an error in one branch', () => {
    const { type, issues } = environment.inferType('object.kind == "x" ? object.spec.nothing : object.spec.tree');
    assert.equal(formatType(type), 'Tree');
    assert.equal(issues.length, 1);
  });

  it('are checked within bounds, however many structs they unite', () => {
    const terms = Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0 ? 'object.spec.containers' : 'object.spec.debuggers',
    );
    assert.equal(typeOf(`(${terms.join(' + ')}).all(c, c.image != "")`), 'bool');
  });

  it('of API servers have distinct structs', () => {
    const { json: _, ...plain } = types;
    const withoutJson = createEnvironment({ variables: { object: types.declareKind('Thing', THING) }, types: plain });
    assert.match(
      withoutJson.inferType('object.spec.containers + object.spec.debuggers').issues[0]?.message ?? '',
      /no matching overload for '_\+_'/u,
    );
  });
});
