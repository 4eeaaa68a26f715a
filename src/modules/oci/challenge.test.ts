import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import * as fc from 'fast-check';

import { parseChallenges } from './challenge.ts';

describe('parseChallenges', () => {
  const read = (header: string): unknown =>
    parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

  for (const [header, expected] of [
    ['', []],
    ['Basic realm="registry"', [['basic', { realm: 'registry' }]]],
    ['Negotiate', [['negotiate', {}]]],
    [
      'Bearer realm="https://auth.example.com/token",service="r",scope="repository:a/b:pull,push"',
      [['bearer', { realm: 'https://auth.example.com/token', service: 'r', scope: 'repository:a/b:pull,push' }]],
    ],
    [
      'Basic realm="a \\"b\\"", Bearer Realm=c , scope="d"',
      [
        ['basic', { realm: 'a "b"' }],
        ['bearer', { realm: 'c', scope: 'd' }],
      ],
    ],
    ['Bearer realm="unclosed', [['bearer', {}]]],
    ['"', []],
  ] as const) {
    it(`reads ${header || 'nothing'}`, () => assert.deepEqual(read(header), expected));
  }

  it('ends for any header', () => {
    const parts = fc.constantFrom('Bearer', 'Basic ', 'realm', '=', '"', '\\', ',', ' ', 'a');
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 30 }), (header) => parseChallenges(header.join('')).length >= 0),
    );
    assert.deepEqual(parseChallenges(`Bearer realm="${'a'.repeat(10_000)}"`), []);
  });
});
