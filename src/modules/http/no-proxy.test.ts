import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { needsNoProxy } from './no-proxy.ts';

describe('needsNoProxy', () => {
  for (const [url, list, expected] of [
    ['https://registry.example.com', '', false],
    ['https://registry.example.com', '*', true],
    ['https://registry.example.com', 'registry.example.com', true],
    ['https://registry.example.com', 'other.test, example.com', true],
    ['https://registry.example.com', 'other.test .example.com', true],
    ['https://registry.example.com', '*.EXAMPLE.com', true],
    ['https://evil-example.com', 'example.com', false],
    ['https://registry.svc', '.svc,.cluster.local', true],
    ['https://registry.example.com', 'registry.example.com:443', true],
    ['https://registry.example.com:5000', 'registry.example.com:443', false],
    ['http://registry.example.com', 'example.com:80', true],
    ['https://10.1.2.3', '10.1.2.3', true],
    ['https://10.1.2.3:5000', '10.1.2.3:5000', true],
    ['https://10.1.2.3:5000', '10.1.2.3:443', false],
    ['https://10.1.2.3', '10.0.0.0/8', true],
    ['https://11.1.2.3', '10.0.0.0/8', false],
    ['https://10.example.com', '10.0.0.0/8', false],
    ['https://10.1.2.3', '10.0.0.0/99, 10.0.0.0/, /8', false],
    ['https://[2001:db8::1]', '2001:DB8:0::1', true],
    ['https://[2001:db8::1]:5000', '[2001:db8::1]:5000', true],
    ['https://[2001:db8::1]', '2001:db8::/32', true],
    ['https://[2001:db8::1]', '10.0.0.0/8', false],
    ['https://registry.example.com', ', :443, .', false],
  ] as const) {
    it(`${expected ? 'excludes' : 'does not exclude'} ${url} by "${list}"`, () =>
      assert.equal(needsNoProxy(new URL(url), list), expected));
  }
});
