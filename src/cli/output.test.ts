import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dataText } from './output.ts';

describe('dataText', () => {
  const value = { count: 9007199254740993n, list: [-9223372036854775808n, 1], text: '"9007199254740993"' };

  it('writes all digits of integers that a number would round', () => {
    assert.equal(
      dataText(value, 'json'),
      '{"count":9007199254740993,"list":[-9223372036854775808,1],"text":"\\"9007199254740993\\""}\n',
    );
    assert.match(dataText(value, 'json', { pretty: true }), /^ {2}"count": 9007199254740993,$/m);
    assert.equal(
      dataText(value, 'yaml'),
      'count: 9007199254740993\nlist:\n  - -9223372036854775808\n  - 1\ntext: \'"9007199254740993"\'\n',
    );
  });
});
