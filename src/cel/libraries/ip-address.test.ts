import assert from 'node:assert/strict';
import { isIPv6 } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import { IpAddress, parseIp } from './ip-address.ts';
import { IpNetwork, parseNetwork } from './ip-network.ts';

function address(text: string): IpAddress {
  const parsed = parseIp(text);
  assert.ok(parsed instanceof IpAddress, text);
  return parsed;
}

const addresses = fc.oneof(
  fc.bigInt(0n, 2n ** 32n - 1n).map((bits) => new IpAddress(bits, 32)),
  fc
    .bigInt(0n, 2n ** 128n - 1n)
    .map((bits) => new IpAddress(bits, 128))
    .filter((ip) => !ip.isMapped),
);

describe('IP addresses', () => {
  test('survive printing and parsing', () => {
    fc.assert(
      fc.property(addresses, (ip) => {
        assert.ok(address(ip.toString()).equals(ip));
      }),
    );
  });

  test('of IPv6 are accepted exactly where Node.js accepts them', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('0f:1.')), maxLength: 24 }), (text) => {
        const isRead = parseIp(text) instanceof IpAddress;
        const isMapped = /^:?:?(?:0*:)*:?f{4}:/u.test(text);
        assert.ok(!text.includes(':') || isMapped || isRead === isIPv6(text), text);
      }),
      { numRuns: 500 },
    );
  });

  test('omit the first of the longest runs of zeros', () => {
    assert.equal(address('1:0:0:2:0:0:0:3').toString(), '1:0:0:2::3');
    assert.equal(address('1:0:0:2:0:0:3:4').toString(), '1::2:0:0:3:4');
    assert.equal(address('1:0:2:3:4:5:6:7').toString(), '1:0:2:3:4:5:6:7');
    assert.equal(address('0:0:0:0:0:0:0:0').toString(), '::');
  });

  test('return an error when compared with other values', () => {
    assert.ok(address('::1').compareEqual('::1') instanceof EvaluationFailure);
  });
});

describe('address ranges', () => {
  test('contain exactly the addresses with their prefix', () => {
    fc.assert(
      fc.property(addresses, addresses, fc.nat(128), (ip, other, bits) => {
        const network = new IpNetwork(ip, Math.min(bits, ip.length));
        assert.ok(network.contains(ip) && network.masked.contains(ip));
        assert.equal(network.contains(other), network.masked.contains(other));
        assert.ok(network.containsNetwork(network.masked));
        assert.ok(network.masked.masked.equals(network.masked));
      }),
    );
  });

  test('accept only digits as prefix length', () => {
    for (const text of ['1.2.3.4/08', '1.2.3.4/+8', '1.2.3.4/99999999999999999999', '1.2.3.4/']) {
      assert.ok(parseNetwork(text) instanceof EvaluationFailure, text);
    }
  });
});
