import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { CelError } from '../model/errors.ts';
import { DYN } from '../model/type.ts';

const environment = createEnvironment({ variables: { object: DYN, request: DYN } });

function hintsOf(text: string): readonly string[] {
  try {
    environment.compile(text);
    return [];
  } catch (error) {
    return error instanceof CelError ? error.issues.flatMap(({ hints }) => hints) : [String(error)];
  }
}

describe('hints for keys with -, . and /', () => {
  const labels = 'object.metadata.labels';
  const cases: readonly (readonly [text: string, written: string])[] = [
    [`${labels}.app-name == 'web'`, `${labels}['app-name']`],
    [`${labels}.cost-center == 'web'`, `${labels}['cost-center']`],
    [`${labels}.app.kubernetes.io/name == 'web'`, `${labels}['app.kubernetes.io/name']`],
    [`${labels}.app.kubernetes.io/part-of == 'web'`, `${labels}['app.kubernetes.io/part-of']`],
    [`${labels}.app-name.startsWith('w')`, `${labels}['app-name']`],
    [`object.metadata.?annotations.?a.io/b-c.orValue('') == ''`, `object.metadata.?annotations[?'a.io/b-c']`],
    [`object.spec.nodeSelector.kubernetes.io/os == 'linux'`, `object.spec.nodeSelector['kubernetes.io/os']`],
    [`object.data.my-key == ''`, `object.data['my-key']`],
    [`object.items.all(c, c.resources.limits.nvidia.com/gpu == 1)`, `c.resources.limits['nvidia.com/gpu']`],
    [`object.spec.a-b.c == 1`, `object.spec['a-b']`],
  ];
  for (const [text, written] of cases) {
    it(`are given for ${text}`, () =>
      assert.ok(
        hintsOf(text).includes(`a key with -, . or / is written in brackets: ${written}`),
        hintsOf(text).join(),
      ));
  }

  it('are the first, and alone in maps of texts', () => {
    assert.deepEqual(new Set(hintsOf(`${labels}.app-name.startsWith('w')`)).size, 1);
    assert.deepEqual(hintsOf(`${labels}.app-name == 'web'`).length, 1);
    assert.deepEqual(hintsOf('object.spec.replicas-count > 1').length, 2);
  });

  for (const text of [`${labels}.app - name`, 'name == 1', 'request.a / name', 'a-name == 1']) {
    it(`are not given for ${text}`, () => assert.doesNotMatch(hintsOf(text).join(), /brackets/));
  }
});
