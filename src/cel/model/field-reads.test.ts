import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { fieldReads } from './field-reads.ts';
import { DYN } from './type.ts';

const environment = createEnvironment({ variables: { object: DYN, oldObject: DYN, request: DYN } });

function reads(text: string): readonly string[] {
  return fieldReads(environment.compile(text).checked.expression)
    .map((path) => path.join('/'))
    .toSorted();
}

describe('the fields that an expression reads', () => {
  const cases: readonly (readonly [expression: string, ...reads: string[]])[] = [
    ['object.spec.replicas > 3', 'object/spec/replicas'],
    ['has(object.spec.paused) && object.spec.paused', 'object/spec/paused'],
    ["object.metadata.labels['app.kubernetes.io/name'] == 'web'", 'object/metadata/labels/app.kubernetes.io/name'],
    ["'app' in object.metadata.labels", 'object/metadata/labels'],
    ["object.metadata.labels['a' + 'b'] == 'x'", 'object/metadata/labels'],
    ['object.spec.containers[0].image == "x"', 'object/spec/containers'],
    ['object.?spec.?replicas.orValue(1) > 3', 'object/spec/replicas'],
    ['object.spec.containers.all(c, c.image != request.name)', 'c/image', 'object/spec/containers', 'request/name'],
    ['object == oldObject', 'object', 'oldObject'],
    ["request['userInfo'].username == 'x'", 'request/userInfo/username'],
    ["size('oldObject.request.userInfo') > 0 // oldObject"],
    ['[object.spec].exists(x, x.a) ? 1 == 2 : {"a": oldObject.b}.a', 'object/spec', 'oldObject/b', 'x/a'],
  ];
  for (const [expression, ...expected] of cases) {
    it(`of ${expression} are ${expected.join(', ') || 'none'}`, () => {
      const found = reads(expression);
      // Comprehensions add internal variables.
      assert.deepEqual(
        found.filter((path) => !/^[@_]/.test(path)),
        expected,
      );
    });
  }
});
