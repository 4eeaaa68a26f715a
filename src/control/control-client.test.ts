import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseControlAddress } from './control-client.ts';

describe('parseControlAddress', () => {
  for (const [text, address] of [
    ['127.0.0.1:8444', { host: '127.0.0.1', port: 8444 }],
    ['[::1]:1', { host: '::1', port: 1 }],
    ['policy-server-0.portcullis.svc:65535', { host: 'policy-server-0.portcullis.svc', port: 65_535 }],
    ['', undefined],
    ['localhost', undefined],
    ['localhost:', undefined],
    [':443', undefined],
    ['::1:443', undefined],
    ['[127.0.0.1]:443', undefined],
    ['localhost:0', undefined],
    ['localhost:65536', undefined],
    ['localhost:1e3', undefined],
    ['https://localhost:443', undefined],
    ['user@localhost:443', undefined],
    ['local host:443', undefined],
    ['localhost:443/path', undefined],
  ] as const) {
    it(`${address === undefined ? 'rejects' : 'reads'} "${text}"`, () => {
      assert.deepEqual(parseControlAddress(text), address);
    });
  }
});
