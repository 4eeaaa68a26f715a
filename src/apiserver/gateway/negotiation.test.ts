import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../cluster/index.ts';
import { aggregatedVersion } from './discovery.ts';
import { mediaRanges, negotiate } from './negotiation.ts';

const none = new URLSearchParams();
const TABLES =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

describe('negotiate', () => {
  const cases: readonly (readonly [string | undefined, string])[] = [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/json', 'json'],
    ['application/yaml', 'yaml'],
    ['application/yaml;q=0.5, application/json', 'json'],
    ['application/vnd.kubernetes.protobuf,application/json', 'json'],
    [TABLES, 'json Table v1'],
    [
      'application/json;as=Table;v=v2;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io',
      'json Table v1beta1',
    ],
    ['application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json', 'json'],
    ['application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1', 'json PartialObjectMetadataList v1'],
    ['text/html', '406'],
    ['application/*', '406'],
    ['application/json;as=Table;v=v2;g=meta.k8s.io', '406'],
    ['application/vnd.kubernetes.protobuf', '406'],
    ['application/json;q=0', 'json'],
  ];
  for (const [accept, expected] of cases) {
    it(`answers ${accept ?? 'no header'} with ${expected}`, () => {
      assert.equal(outcome(accept), expected);
    });
  }

  it('has no YAML for watches', () => {
    assert.throws(() => negotiate({ accept: 'application/yaml' }, none, true), { code: 406 });
    assert.equal(negotiate({ accept: 'application/json;stream=watch' }, none, true).format, 'json');
  });

  it('gives people lines', () => {
    assert.equal(negotiate({ 'user-agent': 'curl/8' }, none, false).isPretty, true);
    assert.equal(negotiate({ 'user-agent': 'curl/8' }, new URLSearchParams('pretty=false'), false).isPretty, false);
    assert.equal(negotiate({}, new URLSearchParams('pretty=1'), false).isPretty, true);
  });

  it('reads every header', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        mediaRanges(accept);
        aggregatedVersion(accept);
        outcome(accept);
      }),
    );
  });
});

function outcome(accept: string | undefined): string {
  try {
    const { format, as, version } = negotiate({ accept }, none, false);
    return as === undefined ? format : `${format} ${as} ${version}`;
  } catch (error) {
    assert.ok(error instanceof ApiError);
    return String(error.code);
  }
}
