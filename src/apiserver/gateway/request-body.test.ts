import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../cluster/index.ts';
import { BodySyntaxError, decode, decodeObject, MAX_BODY_DEPTH, objectFormat } from './request-body.ts';

const json = (text: string): unknown => decodeObject(Buffer.from(text), 'json', 'ConfigMap');
const yaml = (text: string): unknown => decode(Buffer.from(text), 'yaml');

describe('bodies', () => {
  it('have whole characters only, as they are stored', () => {
    assert.deepEqual(json('{"a\\ud800":"\\udc00b\\ud83d\\ude00"}'), { 'a\ufffd': '\ufffdb\u{1f600}' });
    assert.deepEqual(yaml('a: "\\ud800"'), { a: '\ufffd' });
  });

  it('are JSON', () => {
    assert.deepEqual(json('{"a":{"b":[1,"x",null]}}'), { a: { b: [1, 'x', null] } });
    assert.deepEqual(json('null'), {});
    assert.deepEqual(Object.keys(json('{"__proto__":{"a":1}}') as object), ['__proto__']);
  });

  it('are refused with an API server’s message when they are incomplete', () => {
    const start = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; ";
    for (const [text, shown] of [
      ['', '<empty>'],
      ['{', '{'],
      ['{"a":', '{"a":'],
      ['{"a"', '{"a"'],
    ] as const) {
      assert.throws(() => json(text), {
        code: 400,
        message: `${start}json parse error: unexpected end of JSON input (${shown})`,
      });
    }
  });

  it('are objects', () => {
    for (const text of ['[]', '"x"', '7', 'true']) {
      assert.throws(() => json(text), { name: 'ApiError', code: 400 });
    }
  });

  it('may be YAML, with the booleans and octal numbers of 1.1, and dates as text', () => {
    assert.deepEqual(yaml('a: yes\nb: 2026-01-01\nc: 012\nd: ~\ne: 1e3\n'), {
      a: true,
      b: '2026-01-01',
      c: 10,
      d: null,
      e: 1000,
    });
    assert.deepEqual(yaml('{a: 1}'), { a: 1 });
    assert.deepEqual(yaml('base: &b {x: 1}\nderived: {<<: *b, z: 2}\n'), { base: { x: 1 }, derived: { x: 1, z: 2 } });
    assert.throws(() => yaml('a: ['), { name: 'BodySyntaxError', message: /^yaml: line \d+: / });
    assert.throws(() => yaml('a: .nan'), BodySyntaxError);
  });

  it('multiply only within a budget', () => {
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
    assert.throws(
      () => yaml(`l0: &l0 [x,x,x,x,x,x,x,x,x]\n${levels.join('\n')}`),
      /^BodySyntaxError: yaml: line 7: the aliases up to \*l5 stand for more than/,
    );
    assert.throws(() => yaml('a: &a [*a]'), BodySyntaxError);
  });

  it('are nested only so deep', () => {
    const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    assert.ok(json(nested(MAX_BODY_DEPTH)));
    assert.throws(() => json(nested(MAX_BODY_DEPTH + 1)), /nested deeper/);
    assert.ok(json(`{"a":"${'['.repeat(2000)}\\""}`), 'brackets in texts do not count');
    assert.throws(() => yaml('- '.repeat(MAX_BODY_DEPTH + 2)), BodySyntaxError);
  });

  it('are of a type that is known', () => {
    assert.equal(objectFormat(undefined), 'json');
    assert.equal(objectFormat('application/json; charset=utf-8'), 'json');
    assert.equal(objectFormat('application/yaml'), 'yaml');
    assert.equal(objectFormat('application/vnd.kubernetes.protobuf'), 'protobuf');
    for (const type of ['application/cbor', 'text/plain', 'garbage']) {
      assert.throws(() => objectFormat(type), { code: 415 });
    }
  });

  it('are decoded or rejected, for arbitrary bytes', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), fc.string(), fc.json()),
        fc.constantFrom('json', 'yaml', 'protobuf'),
        (body, format) => {
          try {
            decodeObject(Buffer.from(body as string), format, 'Pod');
          } catch (error) {
            assert.ok(error instanceof ApiError && error.code === 400, String(error));
          }
        },
      ),
    );
  });
});
